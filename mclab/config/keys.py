"""List every key of a run: dotted path, type as people write it, default, meaning.

All are read from the config models.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter
from pydantic.fields import FieldInfo

from mclab.config.fields import OneOf
from mclab.config.run import RunConfig
from mclab.config.strict import Leaf, Strict
from mclab.config.variants import TYPE_TEXT, holds_variants

#: The signs for the bounds that the package annotated-types calls `ge`, `gt`, `le` and `lt`.
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


@dataclass(frozen=True)
class Key:
    """One key. `of` is the mixer or task that has the key, `None` for a key that every run has."""

    path: str
    field: FieldInfo
    default: Leaf
    of: str | None = None

    @property
    def type(self) -> str:
        """The type in readable form (`type_text`).

        For a registry, it lists the names that are registered at this moment.
        """
        return type_text(self.field)

    @property
    def meaning(self) -> str:
        """What the key is for, in one line."""
        return self.field.description or ""

    def as_json(self) -> dict[str, Any]:
        """Return the path, type, default, meaning and `of` as a JSON mapping, for other programs."""
        facts = {"path": self.path, "type": self.type, "default": self.default, "meaning": self.meaning}
        return {**facts, "of": self.of}


@cache
def sections() -> dict[str, dict[str | None, type[Strict]]]:
    """Return {dotted path of a section: {name: config model}} for a run; the path "" is the run itself.

    A section that always has the same keys has one model, under the name `None`. A section with a `name` (mixer, task)
    has one model for each name.
    """
    found: dict[str, dict[str | None, type[Strict]]] = {}
    _collect(RunConfig, "", found)
    return found


def _collect(model: type[Strict], path: str, found: dict[str, dict[str | None, type[Strict]]]) -> None:
    found.setdefault(path, {})[_name(model)] = model
    for key, info in model.model_fields.items():
        for inner in _models(info.annotation):
            _collect(inner, f"{path}.{key}".lstrip("."), found)


def _name(model: type[Strict]) -> str | None:
    return str(model.model_fields["name"].default) if "name" in model.model_fields else None


def _models(annotation: Any) -> Iterator[type[Strict]]:
    if isinstance(annotation, type) and issubclass(annotation, Strict):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


@cache
def named_sections() -> frozenset[str]:
    """Return the paths of the sections whose `name` decides which keys they have: the mixer and the task."""
    return frozenset(path for path, models in sections().items() if None not in models)


@cache
def plain_sections() -> frozenset[str]:
    """Return the paths of the sections that only group keys: model, train, eval."""
    return frozenset(sections()) - named_sections() - {""}


@cache
def default_name(path: str) -> str:
    """Return the default `name` of the section at `path`, which is one of `named_sections`."""
    parent, _, key = path.rpartition(".")
    (model,) = sections()[parent].values()
    return str(model.model_fields[key].get_default(call_default_factory=True).name)


@cache
def all_keys() -> tuple[Key, ...]:
    """Return every key in the order of declaration.

    A key that several mixers or tasks have appears once for each of them.
    """
    return tuple(_keys_of(""))


def _keys_of(path: str) -> Iterator[Key]:
    if path in named_sections():
        yield _name_key(path)
    for of, model in sections()[path].items():
        for word, info in model.model_fields.items():
            inner = f"{path}.{word}".lstrip(".")
            if inner in sections():
                yield from _keys_of(inner)
            elif of is None or word != "name":
                default = info.get_default(call_default_factory=True)
                yield Key(inner, info, default, of)


def _name_key(path: str) -> Key:
    parent, _, key = path.rpartition(".")
    (model,) = sections()[parent].values()
    names: Any = Literal[tuple(sections()[path])]
    field = FieldInfo(annotation=names, description=model.model_fields[key].description)
    return Key(f"{path}.name", field, default_name(path))


@cache
def by_path() -> Mapping[str, dict[str | None, Key]]:
    """Return {path: {mixer or task that has the key (`Key.of`): key}}."""
    found: dict[str, dict[str | None, Key]] = {}
    for key in all_keys():
        found.setdefault(key.path, {})[key.of] = key
    return found


def type_text(info: FieldInfo) -> str:
    """Return a field's type as people write it: `context | input | none`, `int >= 1`, `float > 0 or null`."""
    parts = get_args(info.annotation)
    if holds_variants(info.metadata):
        return TYPE_TEXT
    for mark in info.metadata:
        if isinstance(mark, OneOf):
            return " | ".join(mark.names)
    if get_origin(info.annotation) is Literal:
        return " | ".join(map(str, parts))
    if get_origin(info.annotation) is tuple:
        kind, *marks = get_args(parts[0]) if get_origin(parts[0]) is Annotated else parts[:1]
        limits = ", ".join(_limits([*info.metadata, *(inner for mark in marks for inner in mark.metadata)]))
        return f"{_type_name(kind)} {limits}".rstrip() + f" or list of {_type_name(kind)}"
    plain = [part for part in parts if part is not type(None)] or [info.annotation]
    text = f"{' | '.join(map(_type_name, plain))} {', '.join(_limits(info.metadata))}".rstrip()
    return f"{text} or null" if type(None) in parts else text


def _limits(metadata: Iterable[Any]) -> Iterator[str]:
    for mark in metadata:
        for name, sign in _SIGNS.items():
            if hasattr(mark, name):
                yield f"{sign} {getattr(mark, name)}"


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    return "true | false" if kind is bool else str(getattr(kind, "__name__", kind))


@cache
def adapter(path: str, of: str | None) -> TypeAdapter[Any]:
    """Return a pydantic adapter that checks the value of one key, without the rules between several keys."""
    section, _, word = path.rpartition(".")
    if word == "name":
        kind: Any = Literal[tuple(sections()[section])]
        return TypeAdapter(kind)
    info = sections()[section][of].model_fields[word]
    kind = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    return TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False))


def bounds(path: str, of: str | None) -> tuple[float | None, float | None]:
    """Return the least and the greatest value that a key takes; `None` where it has none."""
    section, _, word = path.rpartition(".")
    marks = sections()[section][of].model_fields[word].metadata if word != "name" else []
    least, greatest = ([getattr(m, name) for m in marks if hasattr(m, name)] for name in ("ge", "le"))
    return next(iter(least), None), next(iter(greatest), None)


def shown(value: Any) -> str:
    """Return a value as a grid's author would write it: `null`, `true`, `0.001`, `[4, 8]`, `{name: attention}`."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {shown(inner)}" for key, inner in value.items()) + "}"
    return str(value)

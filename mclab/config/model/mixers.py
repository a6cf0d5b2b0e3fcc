"""All mixers, and the names that stand for them under `model.mixer` or in a pattern.

Examples are `titans`, `attention/16` and `transformer++`; under `model.mixer` also the dotted path of the user's own
mixer.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, cast, get_args

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core.core_schema import CoreSchema

from mclab.config.error import cut, did_you_mean
from mclab.config.fields import is_path
from mclab.config.model.attention import PRESETS, AttentionMixer
from mclab.config.model.base import MixerConfig
from mclab.config.model.conv import ConvMixer
from mclab.config.model.log_linear import LogLinearMixer
from mclab.config.model.memory import MemoryMixer
from mclab.config.model.module import ModuleMixer
from mclab.config.model.rules import RULES


def with_name(value: Any) -> Any:
    """Convert a value of `model.mixer` to a mapping with a `name`.

    The value may be a name, the dotted path of the user's module, or a mapping; anything else is returned unchanged.
    Raises `ValueError` for an unknown name.
    """
    if isinstance(value, str):
        return {"name": "module", "module": value} if is_path(value) else from_name(value)
    if not isinstance(value, dict):
        return value
    name = value.get("name", "memory")
    if isinstance(name, str) and name in RULES:
        raise ValueError(
            f"name: {name} is a memory, not a mixer; write {{name: memory, memory: {name}}}, or mixer: {name} if it "
            "has no other keys"
        )
    return _from_preset(value) if isinstance(name, str) and name in PRESETS else {**value, "name": name}


Mixer = Annotated[
    Annotated[MemoryMixer | AttentionMixer | LogLinearMixer | ConvMixer | ModuleMixer, Field(discriminator="name")],
    BeforeValidator(with_name),
]

#: Every mixer by the value of `model.mixer.name`.
MIXERS: dict[str, type[MixerConfig]] = {
    kind.model_fields["name"].default: kind for kind in get_args(get_args(Mixer)[0])
}
#: The name that stands for `model.mixer` in a pattern.
MIXER = "mixer"
#: Mixers that a pattern cannot name, because they need further keys. In a pattern `mixer` stands for them.
_NOT_IN_PATTERNS = ("memory", "module")
#: The largest number of names in a pattern, and of layers.
MOST_NAMES = 1024


def _from_preset(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return `value` with the keys of the preset. Raises `ValueError` if a key of `value` contradicts the preset."""
    preset = PRESETS[value["name"]]
    for key, given in value.items():
        if key != "name" and key in preset and repr(given) != repr(preset[key]):
            right = str(preset[key]).lower()
            raise ValueError(
                f"{key}: must be {right}, because name is {value['name']}; write name: {preset['name']} for another "
                "value"
            )
    return {**value, **preset}


def from_name(name: str) -> dict[str, Any]:
    """Return the mapping that a name under `model.mixer` stands for.

    `attention/16` is {name: attention, window: 16}, `titans` is {name: memory, memory: titans}. Raises `ValueError`
    with the nearest right name.
    """
    head, slash, number = name.partition("/")
    if head not in _heads():
        raise ValueError(f"{cut(name)!r} is not a known mixer; {_probably(head, tuple(_heads()))}")
    key = _number(head)
    if slash and key is None:
        raise ValueError(f"{cut(name)!r} is not a known mixer; {head} takes no number")
    if slash and not _counts(number, most := _most(head)):
        raise ValueError(
            f"{cut(name)!r} is not a known mixer; the number after {head}/ must be a whole number from 1 to {most}"
        )
    return {**_heads()[head], **({str(key): int(number)} if slash else {})}


def _most(head: str) -> int:
    """Return the largest N that `head/N` accepts, which is the upper bound of the key that N sets."""
    field = MIXERS[_heads()[head]["name"]].model_fields[str(_number(head))]
    return next(int(mark.le) for mark in field.metadata if hasattr(mark, "le"))


def _counts(digits: str, most: int) -> bool:
    """Return whether `digits` is a whole number from 1 to `most`."""
    plain = digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= len(str(most))
    return plain and 1 <= int(digits.lstrip("0") or "0") <= most


def _probably(head: str, heads: tuple[str, ...]) -> str:
    return did_you_mean(head, heads) or f"the known ones are {', '.join(forms(heads))}"


def _heads() -> Mapping[str, Mapping[str, Any]]:
    """Return {beginning of a name (before `/`): the keys that it stands for}, for all mixers, presets and memories."""
    memories = {name: {"name": "memory", "memory": name} for name in RULES}
    return {**{name: {"name": name} for name in MIXERS}, **PRESETS, **memories}


def layer_heads() -> tuple[str, ...]:
    """Return the beginnings (see `_heads`) of names that may be in a pattern."""
    return tuple(head for head in _heads() if head not in _NOT_IN_PATTERNS)


def mixer_heads() -> tuple[str, ...]:
    """Return the beginnings (see `_heads`) of names that may be given under `model.mixer`.

    A module is not among them, since it is named by its path.
    """
    return tuple(head for head in _heads() if head != "module")


def forms(heads: tuple[str, ...]) -> Iterator[str]:
    """Yield the forms of names with these beginnings, for a message: `attention`, `attention/W`, `titans`."""
    for head in heads:
        yield head
        if key := _number(head):
            yield f"{head}/{key[0].upper()}"


def _number(head: str) -> str | None:
    """Return the key that N sets in `head/N`; `None` if `head` takes no number."""
    return MIXERS[_heads()[head]["name"]].number if head in _heads() else None


@cache
def layer_mixer(name: str) -> Mixer:
    """Return the mixer that `name` stands for in a pattern: all other keys have their defaults, and a memory has no
    cache.

    Raises `ValueError` as `from_name` does.
    """
    keys = from_name(name)
    bare = {"aggregate": "none"} if keys["name"] == "memory" else {}
    return cast("Mixer", MIXERS[keys["name"]].model_validate({**keys, **bare}).canonical())


@cache
def name_of(mixer: Mixer) -> str | None:
    """Return the canonical name of this mixer in a pattern; `None` if no name stands for it."""
    number = getattr(mixer, mixer.number) if mixer.number else None
    tail = "" if number is None else f"/{number}"
    names = (f"{head}{tail}" for head in layer_heads() if _heads()[head]["name"] == mixer.name)
    return next((name for name in names if layer_mixer(name) == mixer.canonical()), None)


def _as_pattern(value: Any) -> Any:
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"must be a list of names, one per layer: {', '.join(forms((MIXER, *layer_heads())))}")
    if len(names) > MOST_NAMES:
        raise ValueError(
            f"must have at most {MOST_NAMES} names, because a model has at most as many layers, but has {len(names)}"
        )
    return tuple(map(_checked, names))


def _checked(name: str) -> str:
    """Return the canonical spelling of a name in a pattern: `conv` becomes `conv/3`.

    Raises `ValueError` for an unknown name, with the nearest right one.
    """
    head = name.partition("/")[0]
    if name == MIXER:
        return name
    if head in _NOT_IN_PATTERNS:
        raise ValueError(
            f"{cut(name)!r} cannot be in a pattern; write {MIXER} there and set model.mixer: {{name: {head}}}"
        )
    if head not in layer_heads():
        raise ValueError(f"{cut(name)!r} is not a known mixer; {_probably(head, (MIXER, *layer_heads()))}")
    return name_of(layer_mixer(name)) or name


def names_schema(heads: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON schema (for editors) of the names with these beginnings."""
    numbered = "|".join(head for head in heads if _number(head)).replace("+", r"\+")
    return {"anyOf": [{"enum": list(heads)}, {"type": "string", "pattern": f"^({numbered})/0*[1-9][0-9]{{0,6}}$"}]}


class _Schema:
    """The JSON schema of a pattern. It is made anew each time, since more memories may be registered later."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "array", "items": names_schema((MIXER, *layer_heads())), "maxItems": MOST_NAMES}


#: One name or a list of names; null and the empty list mean `model.mixer` in every layer.
Pattern = Annotated[tuple[str, ...], BeforeValidator(_as_pattern), _Schema()]


def cycled(pattern: tuple[str, ...], layers: int) -> tuple[str, ...]:
    """Return [layers]: the name of each layer; the pattern repeats until all layers have one."""
    names = pattern or (MIXER,)
    return tuple(names[layer % len(names)] for layer in range(layers))


def mixer_of(name: str, mixer: Mixer) -> Mixer:
    """Return the mixer that a name in a pattern stands for if `model.mixer` is `mixer`."""
    return mixer if name == MIXER else layer_mixer(name)


def as_pattern(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the shortest pattern whose layers have these `names`; `()` if every layer has `model.mixer`."""
    layers = len(names)
    period = next(size for size in range(1, layers + 1) if cycled(names[:size], layers) == names)
    return () if names[:period] == (MIXER,) else names[:period]

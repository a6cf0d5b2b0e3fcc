"""Turn plain data into a checked run, and pydantic's errors into messages that say what to change."""

from collections.abc import Callable, Iterator, Mapping
from math import ceil, floor, inf, isfinite, log10
from typing import Any

from pydantic import ValidationError

from mclab.config.error import nearest, suggestion
from mclab.config.keys import adapter, bounds, by_path, default_name, named_sections, sections, shown
from mclab.config.run import RunConfig
from mclab.config.strict import LARGEST, ConfigError, cut
from mclab.config.variants import TYPE_TEXT

#: The prefix of every line, or a function from the dotted path of a key to the prefix (such as `gating.yaml:7`).
Where = str | Callable[[str], str]

#: What people write for "nothing", "yes" and "no", although mclab expects another value.
_NOTHING = ("off", "no", "none", "null", "None", "false", False, None)
_YES = ("yes", "on", "y", "true", "True", 1)
_NO = ("no", "off", "n", "false", "False", 0)

#: The most characters of a value in a message; an integer of more than `_LONG` bits is replaced by its number of
#: digits.
_ENOUGH, _LONG = 500, 128


def parse_run(data: Mapping[str, Any], where: Where = "") -> RunConfig:
    """Return the run that the nested mapping `data` describes; absent keys have their defaults.

    Raises `ConfigError` with one line for each fault: prefix, dotted path, what is wrong, the value, and the most
    likely correction.
    """
    try:
        return RunConfig.model_validate(data if isinstance(data, dict) else dict(data))
    except ValidationError as error:
        raise _config_error(error, where) from None


def check_values(data: Mapping[str, Any], where: Where = "") -> None:
    """Check every key and value of `data` alone, without the rules between several keys.

    Raises `ConfigError` as `parse_run` does.
    """
    try:
        RunConfig.model_validate(data)
    except ValidationError as error:
        if any(not _is_rule(detail) for detail in error.errors()):
            raise _config_error(error, where, rules=False) from None


def check_path(path: str, where: Where = "") -> None:
    """Raise `ConfigError` unless `path` is a key, or a mapping of keys, of some run."""
    if not path or (path not in by_path() and path not in sections()):
        raise ConfigError(_line(path, unknown(path), where))


def typed(path: str, value: Any, where: Where = "") -> Any:
    """Return `value` in the form in which a run holds it under the key `path`: `[16, 4]` becomes `(4, 16)`, `1` becomes
    `1.0`.

    Raises `ConfigError` if no mixer or task accepts this value for this key, and `KeyError` for an unknown key.
    """
    owners = list(by_path()[path])
    for of in owners:
        try:
            return adapter(path, of).validate_python(value)
        except ValidationError as error:
            text = _leaf_text(path, of, error.errors()[0], value)
    raise ConfigError(_line(path, text, where))


def unknown(path: str, of: str | None = None) -> str:
    """Return the message for a `path` that is not a key of the run. `of` is the run's mixer or task in this section."""
    section, _, last = path.rpartition(".")
    if path in by_path():
        return _foreign(path, of)
    if section in by_path():
        return f"unknown key; {section} is itself a key and has no keys inside{_inside(section, last)}"
    models = [model for name, model in sections().get(section, {}).items() if of in (None, name)]
    here = list(dict.fromkeys(key for model in models for key in model.model_fields))
    if guess := _elsewhere(last) or [f"{section}.{key}".lstrip(".") for key in nearest(last, here)] or _far(path):
        return f"unknown key; {suggestion(guess)}"
    return f"unknown key; the keys of {section or 'a run'} are {', '.join(here)}" if here else "unknown key"


def _foreign(path: str, of: str | None) -> str:
    """Return the message for a key that the run's mixer or task `of` does not have, but others have."""
    section = path.rpartition(".")[0]
    noun, owners = section.rpartition(".")[2], " and ".join(map(str, by_path()[path]))
    if of == default_name(section):
        hint = f"add name: {next(iter(by_path()[path]))}"
    else:
        hint = f"to replace the {noun} as a whole, write {section}: {{name: {of}}}"
    return f"is a key of {noun} {owners}, but the {noun} here is {of}; {hint}"


def _inside(path: str, word: str) -> str:
    """Return a hint on how to write the task key `word` in a variant; empty unless the key `path` holds variants."""
    (key, *_) = by_path()[path].values()
    return f"; write {path}: {{{word}: ...}}" if key.type == TYPE_TEXT else ""


def _elsewhere(word: str) -> list[str]:
    return [path for path in (*by_path(), *sections()) if path and path.rpartition(".")[2] == word and word != "name"]


def _far(path: str) -> list[str]:
    """Return the most similar key of all sections, or an empty list.

    Keys are compared by their last part. If none is similar and the section does not exist, whole paths are compared.
    """
    known = {each.rpartition(".")[2]: each for each in by_path()}
    section, _, last = path.rpartition(".")
    near = [known[each] for each in nearest(last, known)]
    return near or ([] if section and section in sections() else nearest(path, by_path()))


def _config_error(error: ValidationError, where: Where, rules: bool = True) -> ConfigError:
    details = [detail for detail in error.errors() if rules or not _is_rule(detail)]
    return ConfigError(*(_line(*_problem(detail), where) for detail in details))


def _line(path: str, text: str, where: Where) -> str:
    prefix = where if isinstance(where, str) else where(path)
    return ": ".join(part for part in (prefix, path, text) if part)


def _problem(detail: Any) -> tuple[str, str]:
    """Return the dotted path and the message of one error; `detail` is pydantic's description of the error."""
    path, of = _place(detail["loc"])
    kind, value = detail["type"], detail["input"]
    if kind in ("extra_forbidden", "invalid_key"):
        return path, unknown(path, of)
    if kind == "union_tag_invalid":
        return f"{path}.name", _values_text(f"{path}.name", None, value["name"])
    if _is_rule(detail):
        return _rule(path, str(detail["ctx"]["error"]))
    if path in sections():
        return path, _mapping_text(path, value)
    return path, _leaf_text(path, of, detail, value)


def _is_rule(detail: Any) -> bool:
    return detail["type"] == "value_error" and _place(detail["loc"])[0] in sections()


def _place(loc: tuple[int | str, ...]) -> tuple[str, str | None]:
    """Return the dotted path for pydantic's `loc`, and the name of the mixer or task of its section.

    pydantic's names of union members are removed from the path.
    """
    path, of, parts = "", None, list(map(str, loc))
    while parts and path not in by_path():  # what follows a key is an index into a list
        path = f"{path}.{parts.pop(0)}".lstrip(".")
        names = [str(name) for name in sections().get(path, {}) if name is not None]
        if names:
            of = parts.pop(0) if len(names) > 1 and parts and parts[0] in names else names[0]
    return path, of


def _rule(path: str, message: str) -> tuple[str, str]:
    """Split the message of a rule into the dotted path of the key that it begins with, and the rest."""
    key, colon, rest = message.partition(": ")
    full = f"{path}.{key}".lstrip(".")
    return (full, rest) if colon and full in by_path() else (path, message)


def _mapping_text(path: str, value: Any) -> str:
    hint = ""
    if path in named_sections():
        hint = f"; take {{name: {value if value in list(sections()[path]) else default_name(path)}}}"
    return f"must be a mapping, got {quoted(value)}{hint}"


def _leaf_text(path: str, of: str | None, detail: Any, value: Any) -> str:
    if detail["type"] == "value_error":
        return f"{detail['ctx']['error']}, got {quoted(value)}{_hint(path, of, value)}"
    if detail["type"] == "literal_error":
        return _values_text(path, of, value)
    return f"must be {_type_of(path, of)}, got {quoted(value)}{_hint(path, of, value)}"


def _type_of(path: str, of: str | None) -> str:
    keys = by_path()[path]
    return keys.get(of, next(iter(keys.values()))).type


def _values_text(path: str, of: str | None, value: Any) -> str:
    """Return the message with the values that a key allows, the ones most similar to `value` first."""
    kind = _type_of(path, of)
    words = [*kind.removesuffix(" or null").split(" | "), *["null"] * kind.endswith(" or null")]
    near = ["none"] if "none" in words and value in _NOTHING else nearest(quoted(value).strip('"'), words)
    ordered = near + [word for word in words if word not in near]
    hint = f"; {suggestion(near)}" if near else ""
    return f"must be {' | '.join(ordered)}, got {quoted(value)}{hint}"


def _hint(path: str, of: str | None, value: Any) -> str:
    """Return a hint at the value that was probably meant.

    For a fraction where an integer is needed, these are the two nearest integers; else the most similar valid value.
    """
    if isinstance(value, float) and isfinite(value) and not value.is_integer():
        near = [str(whole) for whole in (floor(value), ceil(value)) if _takes(path, of, whole)]
        if near:
            return f"; take {' or '.join(near)}"
    fitting = (guess for guess in _guesses(path, of, value) if _takes(path, of, guess))
    return next((f"; take {shown(guess)}" for guess in fitting), "")


def _takes(path: str, of: str | None, value: Any) -> bool:
    try:
        adapter(path, of).validate_python(value)
    except ValidationError:
        return False
    return True


def _guesses(path: str, of: str | None, value: Any) -> Iterator[Any]:
    if isinstance(value, list) and len(value) == 1:
        yield value[0]
    if isinstance(value, str):
        for kind in (int, float):
            try:
                yield kind(value)
            except ValueError:
                continue
    if isinstance(value, float) and value.is_integer():
        yield int(value)
    if isinstance(value, list | dict):
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    yield from [True] * (value in _YES) + [False] * (value in _NO) + [None] * (value in _NOTHING and not number)
    if number:
        least, greatest = bounds(path, of)
        yield from [least] * (least is not None and value < least)
        yield from [greatest] * (greatest not in (None, LARGEST) and greatest < value < inf)


def quoted(value: Any) -> str:
    """Return a value for a message: on one line, text in quotes, and cut if it is long."""
    text = ""
    for piece in _pieces(value, '"'):
        text += piece
        if len(text) > _ENOUGH:
            break
    return cut(" ".join(text.split()))


def _pieces(value: Any, quote: str = "") -> Iterator[str]:
    """Yield the text of `shown` in pieces, so that a large value need not be written completely."""
    if isinstance(value, str):
        yield f"{quote}{value[:_ENOUGH]}{quote}"
    elif isinstance(value, int) and value.bit_length() > _LONG:
        yield f"a number of about {value.bit_length() * log10(2):.0f} digits"
    elif isinstance(value, Mapping):
        for number, (key, inner) in enumerate(value.items()):
            yield f"{', ' if number else '{'}{key}: "
            yield from _pieces(inner)
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield ", " if number else "["
            yield from _pieces(inner)
        yield "]" if value else "[]"
    else:
        yield shown(value)

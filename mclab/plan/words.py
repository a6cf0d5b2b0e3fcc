"""A mixer's word, or the name of a preset, among keys: what it stands for, and what may not stand beside it."""

from collections.abc import Callable, Mapping
from typing import Any

from mclab.config.keys import by_path, shown
from mclab.config.model.mixers import opened
from mclab.config.parse import typed
from mclab.config.strict import ConfigError

ROOM = "model.mixer"
_INSIDE = f"{ROOM}."


def written_out(flat: Mapping[str, Any], where: Callable[[str], str]) -> dict[str, Any]:
    """`flat` with a mixer's word or preset as the keys that it stands for; a wrong one stays, to be found out later.

    Raises `ConfigError`, at `where` of the key, for one beside the word that contradicts it.
    """
    word = flat.get(ROOM)
    given = {path.removeprefix(_INSIDE): value for path, value in flat.items() if path.startswith(_INSIDE)}
    if not isinstance(word, str) and (ROOM in flat or "name" not in given):
        return dict(flat)
    try:
        given = opened(given) if "name" in given else given
        keys = opened(word) if isinstance(word, str) else {}
    except ValueError:
        return dict(flat)
    for key in keys:
        if key in given and differ(path := f"{_INSIDE}{key}", keys[key], given[key]):
            raise ConfigError(f"{where(path)}: {contradiction(path, word or '', keys, given[key])}")
    rest = {path: value for path, value in flat.items() if path != ROOM and not path.startswith(_INSIDE)}
    return rest | {f"{_INSIDE}{key}": value for key, value in {**keys, **given}.items()}


def meant(path: str, value: Any) -> dict[str, str]:
    """The keys that a word in the value of one key stands for, each with the word: of a mixer, or of its name."""
    if path == ROOM and isinstance(value, Mapping):
        path, value = f"{ROOM}.name", value.get("name")
    if path not in (ROOM, f"{ROOM}.name") or not isinstance(value, str):
        return {}
    return dict.fromkeys(written_out({path: value}, lambda _: ""), value)


def contradiction(path: str, word: str, keys: Mapping[str, Any], value: Any) -> str:
    """What is wrong with this value of a key that `word` has another for; `keys` are all that it stands for."""
    key = path.removeprefix(_INSIDE)
    whole = {"name": value} if key == "name" else {**keys, key: value}
    return f"{path}: {word} has {shown(keys[key])} there; write a mapping for another, {ROOM}: {shown(whole)}"


def differ(path: str, one: Any, other: Any) -> bool:
    """Whether two values of a key make different runs."""
    return repr(settled(path, one)) != repr(settled(path, other))


def settled(path: str, value: Any) -> Any:
    """`value` as a run holds it; as it is where no run would take it (the schema complains later)."""
    try:
        return typed(path, value) if path in by_path() else value
    except ConfigError:
        return value

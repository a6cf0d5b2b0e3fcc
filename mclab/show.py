"""One stored run, whole: found by the first digits of its id, and told in an order that a person reads."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mclab.config.outcome import ALL
from mclab.config.run import inert, science
from mclab.config.strict import ConfigError
from mclab.store import Records
from mclab.store.record import config_of

#: Ids that are named where one of them was probably meant.
_MOST_NAMED = 3
_FIGURES = ("steps", "steps_to_99", "diverged_step", "overlap")
_COSTS = ("params", "state_fixed", "state_cached", "tokens_per_s", "wall_s")


@dataclass(frozen=True)
class Found:
    """A record, the folder it is in, and its curve."""

    folder: Path
    record: Mapping[str, Any]
    curve: Sequence[Mapping[str, Any]]


def find(run: str, folder: Path | None, say: Any) -> Found:
    """The one run whose id begins with `run`, in `folder` or in any folder under runs/.

    Raises `ConfigError` where there is none, or more than one, naming those that may have been meant.
    """
    prefix = run.strip().lower().removesuffix(".json")
    if not re.fullmatch(r"[0-9a-f]{1,16}", prefix):
        raise ConfigError(f"{run}: is no run id; one is up to 16 hexadecimal digits (mclab list FOLDER prints them)")
    stored = {path: _ids(path) for path in _folders(folder)}
    found = [(path, name) for path, names in stored.items() for name in names if name.startswith(prefix)]
    if len(found) != 1:
        raise _unclear(prefix, found, stored, folder)
    (where, name), *_ = found
    records = Records(where, say=say)
    record = records.lookup(name)
    if record is None:
        raise ConfigError(f"{where}: the record of run {name} is damaged")
    return Found(where, record, records.curve(name))


def _folders(folder: Path | None) -> list[Path]:
    if folder is not None:
        Records(folder)  # says so where it is none
        return [folder]
    return sorted(path.parent for path in Path("runs").glob("*/records"))


def _ids(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "records").glob("*.json") if len(path.stem) == 16)


def _unclear(
    prefix: str, found: Sequence[tuple[Path, str]], stored: Mapping[Path, Sequence[str]], folder: Path | None
) -> ConfigError:
    where = folder or "runs"
    names = sorted({name for _, name in found})
    if len(names) == 1:
        places = " and ".join(str(path) for path, _ in found)
        return ConfigError(f"{prefix}: run {names[0]} is stored in {places}; give the folder too")
    if names:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return ConfigError(
            f"{prefix}: {len(names)} runs in {where} begin so: {', '.join(names[:_MOST_NAMED])}{more}; give more digits"
        )
    every = sorted({name for ids in stored.values() for name in ids})
    if not every:
        return ConfigError(f"{prefix}: no run is stored in {where}" + ("; give a folder" if folder is None else ""))
    heads = {name[: max(4, len(prefix))]: name for name in every}
    near = [heads[head] for head in get_close_matches(prefix, heads, _MOST_NAMED, cutoff=0.5)]
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; mclab list {folder or 'FOLDER'} prints the ids"
    return ConfigError(f"{prefix}: no run in {where} begins so{hint}")


def as_dict(found: Found) -> dict[str, Any]:
    """The record as it is stored, with its folder, its keys by whether they differ from the defaults, its curve."""
    own, rest = keys_of(found.record)
    return {
        "folder": str(found.folder),
        **{key: value for key, value in found.record.items() if key != "config"},
        "config": {**own, **rest},
        "differs": list(own),
        "curve": list(found.curve),
    }


def keys_of(record: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys that make the run what it is, then the others: at their defaults, or without effect in it."""
    stored = {path: value for path, value in record["config"].items() if path != "seed"}
    try:
        own = science(config_of(dict(record)))
    except ValueError:  # of another version of the science: all of it as it stands
        return stored, {}
    return {path: stored[path] for path in stored if path in own}, {p: v for p, v in stored.items() if p not in own}


def idle_keys(record: Mapping[str, Any]) -> frozenset[str]:
    """Keys that change nothing in this run."""
    try:
        return inert(config_of(dict(record)))
    except ValueError:
        return frozenset()


def scores(record: Mapping[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Slice, score on test, score on valid; all slices first."""
    names = dict.fromkeys([ALL, *record["test"], *record["valid"]])
    return [(name, record["test"].get(name, {}), record["valid"].get(name, {})) for name in names]


def figures(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What was measured beside the scores, where it was."""
    yield from ((key, record[key]) for key in (*_FIGURES, *_COSTS) if record.get(key) is not None)

"""Find a stored run by the first digits of its id, in one run folder or in all run folders under runs/."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mclab.config.error import nearest, suggestion
from mclab.config.strict import ConfigError
from mclab.store.folder import Records

#: The folder that is searched for run folders if the user names none.
_RUNS = Path("runs")
#: The most ids that a message names.
_MOST_NAMED = 3


@dataclass(frozen=True)
class Stored:
    """A run and the run folder that holds it."""

    folder: Path
    run_id: str

    @property
    def weights(self) -> Path:
        """The file with the run's weights, which exists if they were kept."""
        return Records(self.folder).weights(self.run_id)


def find_run(digits: str, folder: Path | None, say: Callable[[str], None], *, weights: bool = False) -> Stored:
    """Return the one run whose id begins with `digits`, in `folder` or in any folder under runs/.

    If several folders hold the run, the first one is taken, or with `weights` the first one that has its weights, if
    any. `say` then gets a line that names all of them. Raises `ConfigError` if no run or several runs match; the
    message names the runs that may have been meant.
    """
    prefix = digits.strip().lower().removesuffix(".json")
    if not re.fullmatch(r"[0-9a-f]{1,16}", prefix):
        raise ConfigError(
            f"{digits!r} is no run id: give up to 16 hexadecimal digits of one (mclab list FOLDER prints run ids)"
        )
    stored = {path: _ids(path) for path in _folders(folder)}
    found = [Stored(path, name) for path, names in stored.items() for name in names if name.startswith(prefix)]
    names = sorted({each.run_id for each in found})
    if len(names) > 1:
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        named = f"{', '.join(names[:_MOST_NAMED])}{more}"
        raise ConfigError(
            f"{prefix}: {len(names)} run ids in {folder or _RUNS} begin with these digits: {named}; give more digits"
        )
    if not names:
        raise _unknown(prefix, stored, folder)
    copies = [each for each in found if weights and each.weights.is_file()] or found
    if len(copies) > 1:
        places = " and ".join(str(each.folder) for each in copies)
        say(f"run {names[0]} is stored in {places}; the copy in {copies[0].folder} is used")
    return copies[0]


def _folders(folder: Path | None) -> list[Path]:
    if folder is None:
        return sorted(path.parent for path in _RUNS.glob("*/records"))
    Records(folder)  # raises if it is no run folder
    if not (folder / "records").is_dir():
        raise ConfigError(
            f"{folder}: this folder holds no records; give the --out of an ablate, train or sweep command"
        )
    return [folder]


def _ids(folder: Path) -> list[str]:
    names = (path.stem for path in (folder / "records").glob("*.json"))
    return sorted(name for name in names if re.fullmatch("[0-9a-f]{16}", name))


def _unknown(prefix: str, stored: Mapping[Path, Iterable[str]], folder: Path | None) -> ConfigError:
    where, every = folder or _RUNS, sorted({name for ids in stored.values() for name in ids})
    if not every:
        return ConfigError(
            f"{prefix}: no run is stored in {where}" + ("; name the run's folder" if folder is None else "")
        )
    heads = {name[: max(4, len(prefix))]: name for name in every}
    near = suggestion([heads[head] for head in nearest(prefix, heads, _MOST_NAMED)])
    hint = near or f"mclab list {folder or 'FOLDER'} prints the run ids"
    return ConfigError(f"{prefix}: no run id in {where} begins with these digits; {hint}")

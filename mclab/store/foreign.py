"""Files in a run folder that no command of mclab has written: they stay where they are and what they are."""

import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from mclab.store.files import StoreError, plainly

#: What `mclab.atomic_files.write_whole` leaves behind where it is killed: `.<name>.<16 hex digits>.tmp`.
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
_RECORD = re.compile(r"[0-9a-f]{16}\.json")
#: Folders whose files are written again at the end of each command, under names that others may use too.
_REPORTS = ("tables", "plots")


def is_own_folder(path: Path) -> bool:
    """Whether it is a folder that stands in the run folder itself; what a link leads to may be anybody's."""
    return path.is_dir() and not path.is_symlink()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of a killed writer. For the holder of the lock alone."""
    with plainly(folder, "remove a leftover"):
        for path in folder.iterdir():
            if _LEFTOVER.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
                path.unlink(missing_ok=True)


def _names(folder: Path) -> list[str]:
    with plainly(folder, "read"):
        return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def refuse_foreign(folder: Path, marks: Sequence[str], given: Mapping[str, bytes]) -> None:
    """Raise `StoreError` where a command would write over what others have written.

    A folder with one of the files `marks`, or with a record, is a run folder already. In another one none of `given`,
    by name, may stand with another content, and the folders of tables and plots must be empty.
    """
    if any((folder / name).exists() for name in marks) or any(map(_RECORD.fullmatch, _names(folder / "records"))):
        return
    for name, content in given.items():
        path = folder / name
        with plainly(path, "read"):
            if path.exists() and not (path.is_file() and path.read_bytes() == content):
                raise StoreError(f"{path}: stands there already and is not this command's; give another --out")
    for path in (folder / name for name in _REPORTS):
        with plainly(path, "read"):
            if path.is_dir() and any(path.iterdir()):
                raise StoreError(f"{path}: holds files that are not this command's; give another --out")

"""`mclab train`: decide whether a folder accepts further runs, since several commands may train into the same one."""

from collections.abc import Callable
from pathlib import Path

from mclab.config.strict import ConfigError
from mclab.store import Records


def takes_more(out: Path, name: str, say: Callable[[str], None]) -> bool:
    """Return whether earlier `mclab train` commands made the folder, which then accepts runs of any configuration."""
    if not out.is_dir() or (out / "grid.yaml").exists():
        return False
    try:
        before = Records(out, say=say).plan()
    except ConfigError:  # the plan is damaged; this is reported when the store is opened
        return False
    return before is not None and before.name == name

"""`mclab train`: several commands may train runs into the same run folder."""

from collections.abc import Callable
from pathlib import Path

from mclab.config.strict import ConfigError
from mclab.store import Records


def takes_more(out: Path, name: str, say: Callable[[str], None]) -> bool:
    """Return `True` for a folder of earlier `mclab train` commands, which accepts further runs with any other keys."""
    if not out.is_dir() or (out / "grid.yaml").exists():
        return False
    try:
        before = Records(out, say=say).plan()
    except ConfigError:  # the plan is damaged; opening the store reports it
        return False
    return before is not None and before.name == name

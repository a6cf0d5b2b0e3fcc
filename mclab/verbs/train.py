"""`mclab train`: a run folder that gathers the runs of several commands."""

from collections.abc import Callable
from pathlib import Path

from mclab.config.strict import ConfigError
from mclab.store import Records


def takes_more(out: Path, name: str, say: Callable[[str], None]) -> bool:
    """True for a folder of earlier `mclab train` commands: it takes further runs, whatever they vary."""
    if not out.is_dir() or (out / "grid.yaml").exists():
        return False
    try:
        before = Records(out, say=say).plan()
    except ConfigError:  # damaged: the store says so
        return False
    return before is not None and before.name == name

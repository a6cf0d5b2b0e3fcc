"""A grid's file: the name that it gives to plan and run folder, and the line of each key."""

from dataclasses import dataclass, field
from pathlib import Path

from mclab.config.strict import ConfigError


@dataclass(frozen=True)
class Source:
    """Where a grid was read: its name, and the line of every key by dotted path (list items by their number)."""

    name: str
    lines: dict[str, int] = field(default_factory=dict)

    def at(self, path: str = "") -> str:
        """`gating.yaml:7`, the line of `path` or of the nearest mapping around it; without lines the name alone."""
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        return f"{self.name}:{self.lines[path]}" if path else self.name

    def error(self, path: str, text: str) -> ConfigError:
        """A `ConfigError` about the thing at `path`."""
        return ConfigError(f"{self.at(path)}: {text}")


def name_of(path: str | Path) -> str:
    """The file's name without its ending and without dots in front: never hidden, nor `.` or `..`.

    Raises `ConfigError` where nothing is left of it, and for one that is no text: tables and records carry it.
    """
    name = Path(path).stem.lstrip(".").strip()
    if not name:
        raise ConfigError(f"{path}: its name is but dots, and names the run folder; rename the file, e.g. grid.yaml")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{path}: its name is no UTF-8 text, and stands in the tables; rename the file") from None
    return name

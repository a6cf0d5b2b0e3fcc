"""The file of a grid: the line of each key, and the name that it gives to the plan and the run folder."""

from dataclasses import dataclass, field
from pathlib import Path

from mclab.config.strict import ConfigError


@dataclass(frozen=True)
class Source:
    """Where a grid was read: its name, and the line of every key by dotted path (list items by number)."""

    name: str
    lines: dict[str, int] = field(default_factory=dict)

    def at(self, path: str = "") -> str:
        """Return `gating.yaml:7`, with the line of `path` or of the nearest mapping around it, else only the name."""
        while path and path not in self.lines:
            path = path.rpartition(".")[0]
        return f"{self.name}:{self.lines[path]}" if path else self.name

    def error(self, path: str, text: str) -> ConfigError:
        """Return a `ConfigError` about what was written at `path`."""
        return ConfigError(f"{self.at(path)}: {text}")


def name_of(path: str | Path) -> str:
    """Return the file's name without its ending and without leading dots, so that a folder of this name is not hidden.

    Raises `ConfigError` if the name is then empty, or if it is not valid UTF-8, since tables and records show it.
    """
    name = Path(path).stem.lstrip(".").strip()
    if not name:
        raise ConfigError(
            f"{path}: the file's name has only dots, but it names the run folder; rename the file, e.g. grid.yaml"
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{path}: the file's name is not valid UTF-8, but tables and records have to show it; rename the file"
        ) from None
    return name

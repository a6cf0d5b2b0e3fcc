"""Where in a file each key of a grid stands."""

from dataclasses import dataclass, field

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

"""Check a YAML document before it becomes data: note the line of each key, and refuse what no plan can use.

All uses of an alias share the same nodes. These are visited once, but count at every use.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

from mclab.config.keys import by_path
from mclab.config.strict import TOO_LARGE, ConfigError, cut
from mclab.plan.source import Source

TAG = "tag:yaml.org,2002:"
MERGE = f"{TAG}merge"
#: The most nodes of a document, where every use of an alias counts, and the most levels of nesting.
MOST_NODES, MOST_LEVELS = 1_000_000, 50
#: The number of digits of the largest whole number.
_DIGITS = len(str(TOO_LARGE))


class _Size(NamedTuple):
    nodes: int
    levels: int


def check_document(node: yaml.Node, source: Source, at: str = "") -> None:
    """Store the line of every key of the document in `source`. If the document is the value of a key, `at` is that key.

    Raises `ConfigError` for a key that is given twice or is no text, a node that contains itself, more nodes or levels
    than anybody writes, and a whole number that is too large for a table.
    """
    _Scan(source, at).node(node, "")


def whole(text: str) -> int:
    """Return the whole number that a scalar stands for.

    Raises `ValueError` for other text and for thousands of digits.
    """
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


@dataclass
class _Scan:
    source: Source
    at: str
    open: list[int] = field(default_factory=list)
    leaves: dict[str, int] = field(default_factory=dict)
    #: The size of each node that was visited. A merged node gives its keys to the mapping around it, so it is visited
    #: once in each such mapping.
    walked: dict[tuple[int, str | None], _Size] = field(default_factory=dict)

    def node(self, node: yaml.Node, path: str, merged: bool = False) -> _Size:
        if id(node) in self.open:
            raise ConfigError(f"{self._line(node)}: {path}: this block contains itself")
        if isinstance(node, yaml.ScalarNode):
            self._number(node, path)
            return _Size(1, 1)
        known = (id(node), path if merged else None)
        if known not in self.walked:
            self.open.append(id(node))
            inner = self._mapping(node, path, merged) if isinstance(node, yaml.MappingNode) else self._list(node, path)
            self.walked[known] = self._sum(inner, node, path)
            self.open.pop()
        return self.walked[known]

    def _sum(self, inner: Iterable[_Size], node: yaml.Node, path: str) -> _Size:
        nodes = levels = 1
        for size in inner:
            nodes, levels = nodes + size.nodes, max(levels, 1 + size.levels)
        place = f"{self._line(node)}: {cut(path)}" if path else self._line(node)
        if levels > MOST_LEVELS:
            raise ConfigError(f"{place}: the nesting is too deep; at most {MOST_LEVELS} levels are allowed")
        if nodes > MOST_NODES:
            raise ConfigError(
                f"{place}: there are {nodes:,} values when every alias is written out, but at most {MOST_NODES:,} are "
                "allowed"
            )
        return _Size(nodes, levels)

    def _list(self, node: yaml.SequenceNode, path: str) -> list[_Size]:
        found = []
        for number, item in enumerate(node.value):
            self._note(item, inner := f"{path}.{number}".lstrip("."))
            found.append(self.node(item, inner))
        return found

    def _mapping(self, node: yaml.MappingNode, path: str, merged: bool) -> list[_Size]:
        found = list[_Size]()
        seen: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(f"{self._line(key)}: a key must be text, not a list or a mapping")
            full = f"{path}.{key.value}".lstrip(".")
            if key.value in seen:
                raise self._twice(full, seen[key.value].start_mark.line + 1, key)
            seen[key.value] = key
            if key.tag != MERGE:
                self._leaf(full, key, value, merged)
                self._note(key, full)
                found.append(self.node(value, full, merged))
        for key, value in node.value:
            if key.tag == MERGE:
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    found.append(self.node(part, path, merged=True))
        return found

    def _number(self, node: yaml.ScalarNode, path: str) -> None:
        if node.tag != f"{TAG}int" or not _too_large(node.value):
            return
        digits = len(node.value.lstrip("+-0xo"))
        got = f"{cut(node.value, 20)} ({digits} digits)" if digits > 20 else node.value
        raise ConfigError(
            f"{self._line(node)}: {cut(path) + ': ' if path else ''}{_bound(f'{self.at}.{path}'.strip('.'))}, got {got}"
        )

    def _leaf(self, full: str, key: yaml.Node, value: yaml.Node, merged: bool) -> None:
        """Store the line of a key with a value. Raises `ConfigError` if `a.b: 1` and `a: {b: 2}` give one key twice."""
        if isinstance(value, yaml.MappingNode) or merged:
            return
        if full in self.leaves:
            raise self._twice(full, self.leaves[full], key)
        self.leaves[full] = key.start_mark.line + 1

    def _note(self, node: yaml.Node, path: str) -> None:
        self.source.lines.setdefault(path, node.start_mark.line + 1)

    def _twice(self, full: str, first: int, key: yaml.Node) -> ConfigError:
        second = key.start_mark.line + 1
        lines = f"on lines {first} and {second}" if first != second else f"on line {first}"
        return ConfigError(f"{self._line(key)}: {full}: this key is given twice, {lines}; keep one")

    def _line(self, node: yaml.Node) -> str:
        return f"{self.source.name}:{node.start_mark.line + 1}"


def _too_large(text: str) -> bool:
    if text[:2] not in ("0o", "0x") and len(text.lstrip("+-0")) > _DIGITS:
        return text.lstrip("+-").isdecimal()
    try:
        return abs(whole(text)) >= TOO_LARGE
    except ValueError:  # the constructor of an explicit tag refuses the value
        return False


def _bound(path: str) -> str:
    """Return the bound of the key at the end of a path if it takes only whole numbers, else that of any number."""
    words = path.split(".")
    for start in range(len(words)):
        for end in (len(words), len(words) - 1):  # in a list, the last part of the path is the number of the item
            for key in by_path().get(".".join(words[start:end]), {}).values():
                if key.type.startswith("int"):
                    return f"must be {key.type}"
    return f"whole numbers must be below {TOO_LARGE} in size"

"""Read YAML strictly: scalars as in YAML 1.2, no key twice, and a line number for every key."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from mclab.config.strict import ConfigError, cut
from mclab.plan.source import Source
from mclab.plan.yaml_check import TAG, check_document, whole

#: The scalars of YAML 1.2's core schema (yaml.org/spec/1.2.2, section 10.3.2) and their possible first characters.
_SCALARS = {
    "null": (r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return {first character: possible types of a plain scalar}. The first pattern that matches decides."""
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for name, (pattern, firsts) in _SCALARS.items():
        for first in firsts:
            table.setdefault(first, []).append((f"{TAG}{name}", re.compile(f"^(?:{pattern})$")))
    return table


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _scalar(kind: str, make: Callable[[str], Any]) -> Callable[[yaml.SafeLoader, yaml.ScalarNode], Any]:
    """Return a constructor for scalars of one kind, which refuses other text such as `!!int x`."""

    def construct(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        text = loader.construct_scalar(node)
        try:
            return make(text)
        except (ValueError, KeyError):
            raise yaml.constructor.ConstructorError(
                None, None, f"{text[:40]!r} is not {kind}", node.start_mark
            ) from None

    return construct


class GridLoader(yaml.SafeLoader):  # type: ignore[misc]
    """PyYAML's safe loader with YAML 1.2 scalars: `1e-3` is a number; `off`, `no`, `1:30` and dates are text.

    Keys are always text, as written. Tags other than those of plain data are an error.
    """

    yaml_implicit_resolvers = _resolvers()
    yaml_constructors: Mapping[str | None, Any] = {
        f"{TAG}null": _scalar("null", lambda text: None),
        f"{TAG}bool": _scalar("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
        f"{TAG}int": _scalar("a whole number", whole),
        f"{TAG}float": _scalar("a number", _float),
        f"{TAG}str": yaml.SafeLoader.construct_yaml_str,
        f"{TAG}seq": yaml.SafeLoader.construct_yaml_seq,
        f"{TAG}map": yaml.SafeLoader.construct_yaml_map,
        None: yaml.SafeLoader.construct_undefined,
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """Return the mapping with its keys as text; keys in the mapping itself override merged ones.

        `check_document` has already refused keys of other kinds, and repeated ones.
        """
        self.flatten_mapping(node)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}


def read(path: str | Path) -> bytes:
    """Return the bytes of a grid's file, which may be a pipe and can then be read only once. Raises `ConfigError`."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None


def load(content: bytes, name: str) -> tuple[Any, Source]:
    """Return the data of a YAML file and the line of each key. Raises `ConfigError` with file and line.

    `name` is the file's name.
    """
    try:
        return load_text(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: is not UTF-8 text (byte {error.start})") from None


def load_text(text: str, name: str, at: str = "") -> tuple[Any, Source]:
    """Return the data of a YAML text and the line of each key; see `load`. `name` names the text in messages.

    If the text is the value of a key, `at` is that key.
    """
    source = Source(name)
    try:
        loader = GridLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None, source
        check_document(node, source, at)
        return loader.construct_document(node), source
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError(f"{name}:{mark.line + 1}: {_one_line(error)}") from None
    except RecursionError:
        raise ConfigError(f"{name}: is nested too deeply") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: {str(error).splitlines()[0]}") from None


def parse_value(text: str, at: str = "") -> Any:
    """Return the value of `at=text` on a command line, with the type that it has in a grid. Raises `ConfigError`."""
    try:
        return load_text(text, "value", at)[0]
    except ConfigError as error:
        raise ConfigError(f"{cut(text)}: {str(error).partition(': ')[2]}") from None


def _one_line(error: yaml.MarkedYAMLError) -> str:
    problem = " ".join((error.problem or "cannot be read").split())
    if "constructor for the tag" in problem:
        return f"{problem.rpartition(' ')[2]} is not a tag of plain data"
    hint = "; indent with spaces" if "\\t" in problem else ""
    hint = "; put text with a colon in quotes" if "mapping values" in problem else hint
    return f"this is not valid YAML: {' '.join([error.context or '', problem]).strip()}{hint}"

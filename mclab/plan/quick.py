"""The reduced form of a grid, made from its `quick` block and the rest of the grid."""

from collections.abc import Mapping
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.keys import named_sections, sections
from mclab.config.parse import quoted
from mclab.config.strict import ConfigError
from mclab.plan.dotted import pairs, with_names_expanded, within
from mclab.plan.source import Source

QUICK = "quick"
#: The blocks of rows that a quick block replaces as a whole; it may also hold keys of the base.
ROWS = ("grid", "zip", "changes", "runs")
KEYS = ("base", *ROWS, "when", "exclude", "select", "seeds")
NOTE = (
    "quick: this is the reduced form of the grid, as its quick block describes it; without --quick the full grid runs"
)


def reduced(data: Mapping[str, Any], source: Source) -> tuple[dict[str, Any], Source]:
    """Return the reduced grid that `data` and its quick block describe, and where each of its keys was written.

    The block's `base` replaces keys of the grid's base one by one; a mixer or a task with a name replaces the grid's as
    a whole. Any other block in it replaces the grid's block, and null removes it. Raises `ConfigError` if there is no
    quick block, and for a key that it may not contain.
    """
    block = _block(data, source)
    full = {key: value for key, value in data.items() if key != QUICK}
    if "base" in block:
        full["base"] = _base(full.get("base"), block["base"], source)
    given = [key for key in block if key != "base"]
    rows = [key for key in given if key in ROWS and block[key] is not None]
    for key in [*given, *_displaced(rows)]:
        full.pop(key, None)
    return full | {key: block[key] for key in given if block[key] is not None}, _moved(source, given)


def _block(data: Mapping[str, Any], source: Source) -> Mapping[str, Any]:
    if QUICK not in data:
        raise ConfigError(
            f"{source.name}: --quick: this grid has no quick block; add one, "
            f"e.g. quick: {{base: {{train.steps: 100}}, seeds: [0]}}, or leave --quick out"
        )
    block = data[QUICK]
    if not isinstance(block, Mapping) or not block:
        raise source.error(
            QUICK, f"quick: must be a mapping with some of the keys {', '.join(KEYS)}, got {quoted(block)}"
        )
    for key in block:
        if key not in KEYS:
            hint = did_you_mean(str(key), KEYS) or f"the keys of quick are {', '.join(KEYS)}"
            hint = "it belongs under quick.base" if str(key).partition(".")[0] in sections() else hint
            raise source.error(f"quick.{key}", f"quick.{key}: unknown key; {hint}")
    return block


def _base(full: Any, over: Any, source: Source) -> Any:
    """Return the keys of both bases by dotted path; those in `over` override.

    If `full` is no mapping, it is returned unchanged and refused later.
    """
    if not isinstance(over, Mapping):
        raise source.error("quick.base", f"quick.base: must be a mapping of keys to values, got {quoted(over)}")
    if not isinstance(full, Mapping | None):
        return full
    below, above = _dotted(full or {}, "base", source), _dotted(over, "quick.base", source)
    named = [section for section in named_sections() if f"{section}.name" in above]
    return {path: value for path, value in below.items() if not any(within(path, section) for section in named)} | above


def _dotted(data: Mapping[str, Any], at: str, source: Source) -> dict[str, Any]:
    flat = dict(pairs(data, sections(), "", f"{source.at(at)}: {at}"))
    return with_names_expanded(flat, lambda path: source.at(f"{at}.{path}"))


def _displaced(rows: list[str]) -> tuple[str, ...]:
    """Return the grid's blocks of rows that cannot be combined with those of the quick block."""
    if not rows:
        return ()
    return tuple(key for key in (ROWS if "runs" in rows else ("runs",)) if key not in rows)


def _moved(source: Source, replaced: list[str]) -> Source:
    """Return the source with the lines of the quick block under the paths that its keys have in the reduced grid."""
    inside = f"{QUICK}."
    kept = {at: line for at, line in source.lines.items() if at.partition(".")[0] not in (QUICK, *replaced)}
    moved = {at.removeprefix(inside): line for at, line in source.lines.items() if at.startswith(inside)}
    return Source(source.name, kept | moved)

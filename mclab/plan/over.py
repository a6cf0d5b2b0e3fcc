"""The grid's `select`: the candidates that every cell chooses from, and by what."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from mclab.config.guess import did_you_mean
from mclab.config.keys import choices, sections
from mclab.config.parse import quoted
from mclab.plan.plan import Select
from mclab.plan.rows import axes, refuse_many
from mclab.plan.settings import Setting
from mclab.plan.source import Source

#: What a cell may choose by. The test set is for the table alone.
METRICS = ("valid.accuracy", "valid.loss")
_KEYS = ("over", "by", "seeds")
#: What a cell may not choose: the easiest exam would win.
_EXAM = ("task", "eval")


def select_from(
    data: Any, seeds: Sequence[int], fewer: bool, source: Source, notes: list[str]
) -> tuple[Select | None, tuple[tuple[Setting, ...], ...]]:
    """The rule and the settings of each candidate (one without any where there is no `select`).

    `fewer` says that the command line gave fewer seeds than the grid has, so that `select.seeds` may shrink with them.
    Raises `ConfigError` for unknown keys and metrics, an empty `over`, a mapping as a value, a key that changes the
    exam, more seeds than there are.
    """
    if data is None:
        return None, ((),)
    if not isinstance(data, Mapping):
        raise source.error("select", f"select: needs a mapping with over, by and seeds, got {quoted(data)}")
    for key in data:
        if key not in _KEYS:
            hint = did_you_mean(str(key), _KEYS) or f"select has {', '.join(_KEYS)}"
            raise source.error(f"select.{key}", f"select.{key}: unknown key; {hint}")
    over = dict(axes(data.get("over") or {}, source, "select.over", notes))
    if not over:
        raise source.error("select", "select.over: is empty; list values to choose from, e.g. {train.lr: [1e-3, 1e-2]}")
    for path in over:
        if path.partition(".")[0] in _EXAM:
            raise source.error(
                f"select.over.{path}",
                f"select.over: {path}: changes the exam, so every cell would choose the easiest; vary it under grid",
            )
        if path in choices() or path in sections():
            raise source.error(
                f"select.over.{path}", f"select.over: {path}: is a mapping of keys; choose among values of one"
            )
    refuse_many("select.over", prod(map(len, over.values())), "candidates", source)
    rule = Select(tuple(over), _metric(data, source), _seeds(data, seeds, fewer, source, notes))
    return rule, tuple(product(*over.values()))


def _metric(data: Mapping[str, Any], source: Source) -> str:
    by = data.get("by", METRICS[0])
    if by in METRICS:
        return str(by)
    hint = did_you_mean(str(by), METRICS, "; ")
    if str(by).startswith("test"):
        hint = "; test is for the table, choose on valid"
    raise source.error("select.by", f"select.by: needs {' or '.join(METRICS)}, got {quoted(by)}{hint}")


def _seeds(data: Mapping[str, Any], seeds: Sequence[int], fewer: bool, source: Source, notes: list[str]) -> int:
    count = data.get("seeds", min(2, len(seeds)))
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise source.error("select.seeds", f"select.seeds: needs a number of seeds, at least 1, got {quoted(count)}")
    if count > len(seeds) and fewer:
        notes.append(f"select.seeds: {count} lowered to the {len(seeds)} that there are")
        return len(seeds)
    if count > len(seeds):
        raise source.error(
            "select.seeds", f"select.seeds: {count}, but there are only {len(seeds)} seeds; take {len(seeds)}"
        )
    return count


def refuse_double(over: Sequence[str], varied: Sequence[Setting], source: Source) -> None:
    """Raise `ConfigError` where a row sets a key that every cell is to choose."""
    for path in over:
        for item in varied:
            if path in item.touches:
                raise source.error(
                    f"select.over.{path}", f"select.over: {path}: is varied as well ({item.where}); keep one"
                )

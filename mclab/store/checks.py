"""Check the figures of a record, so that an error in a file that was edited by hand does not get into a table."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mclab.config.outcome import ALL

#: The largest whole number that a column of a table can hold.
MOST = 2**63 - 1
#: Metrics whose value for `all` is the mean over the task's own slices, and the rounding error that is allowed.
_MEANS = ("accuracy", "loss", "token_accuracy")
_ROUNDING = 1e-9


def check_figures(record: Mapping[str, Any]) -> None:
    """Raise `ValueError`, which names the figure, if a figure has a wrong type or an accuracy is outside [0, 1]."""
    for split in ("valid", "test"):
        _check_scores(split, record[split])
    for key, (right, requirement) in FIGURES.items():
        value = record.get(key)
        if value is not None and not right(value):
            raise ValueError(f"has {_short(value)} for {key}, which must be {requirement}")


def _check_scores(split: str, scores: Any) -> None:
    if not isinstance(scores, dict):
        raise ValueError(f"has {_short(scores)} for {split}, which must be an object")
    for part, score in scores.items():
        if not isinstance(score, dict):
            raise ValueError(f"has {_short(score)} for {split} {part}, which must be an object")
        if not _share(score.get("accuracy")):
            accuracy = _short(score.get("accuracy"))
            raise ValueError(f"has {accuracy} for {split} {part} accuracy, which must be a number from 0 to 1")
        for metric in ("token_accuracy", "value_accuracy", "values_found"):
            value = score.get(metric)
            if value is not None and not _share(value):
                raise ValueError(f"has {_short(value)} for {split} {part} {metric}, which must be a number from 0 to 1")
        for metric, value in score.items():
            if value is not None and not _number(value):
                raise ValueError(f"has {_short(value)} for {split} {part} {metric}, which must be a number")


def check_whole(record: Mapping[str, Any], own: Sequence[str]) -> None:
    """Raise `ValueError` if a done run lacks a score, or if a score of `all` is not the mean over the slices `own`.

    Call `check_figures` first, which checks the types.
    """
    for split in ("valid", "test"):
        scores = record[split]
        missing = [part for part in (ALL, *own) if part not in scores]
        if missing and record["status"] == "done":
            raise ValueError(f"has the status done but no {split} scores of {missing[0]}")
        for metric in () if missing else _MEANS:
            whole, *parts = (scores[part].get(metric) for part in (ALL, *own))
            if whole is None or None in parts:
                continue
            mean = sum(value / len(own) for value in parts)
            if not math.isclose(whole, mean, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
                raise ValueError(
                    f"has {_short(whole)} for {split} all {metric}, but the mean over its slices is {mean:.6g}"
                )


def _number(value: Any) -> bool:
    """Return whether `value` is a finite number: no boolean, and no integer above `MOST` in absolute value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MOST if isinstance(value, int) else math.isfinite(value)


def _share(value: Any) -> bool:
    return _number(value) and 0 <= value <= 1


def _count(value: Any) -> bool:
    return isinstance(value, int) and _number(value) and value >= 0


def _shares(value: Any) -> bool:
    """Return whether `value` is a mapping {slice: {name: share}} with printable names, since tables show them."""
    inner = value.values() if isinstance(value, dict) else [None]
    return all(
        isinstance(named, dict) and all(name.isprintable() and _share(share) for name, share in named.items())
        for named in inner
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


_COUNT, _NUMBER = (_count, "a whole number"), (_number, "a number")

#: For each figure other than the scores: a check of values that are not null, and a description of the right values.
FIGURES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(
        ("science", "seed", "steps", "steps_to_99", "params", "state_fixed", "state_cached", "diverged_step"), _COUNT
    ),
    **dict.fromkeys(("tokens_per_s", "wall_s"), _NUMBER),
    "overlap": (_share, "a number from 0 to 1"),
    "error": (lambda value: isinstance(value, str), "text"),
    "without_recall": (_shares, "an object of objects of numbers from 0 to 1"),
    "provenance": (lambda value: isinstance(value, dict), "an object"),
}

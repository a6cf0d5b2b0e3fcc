"""The looks of a stored curve as numbers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mclab.config.outcome import ALL


def looks_of(curve: Sequence[Mapping[str, Any]], metric: str) -> Iterator[tuple[int, float]]:
    """Step and value of each look at valid, on all slices."""
    for look in curve:
        value = (look.get("valid") or {}).get(ALL, {}).get(metric)
        if value is not None:
            yield int(look["step"]), float(value)

"""A run's curve as a file, one look a line, and back."""

import json
from typing import Any

from mclab import digest
from mclab.store.plain import json_bytes


def curve_bytes(curve: tuple[dict[str, Any], ...]) -> bytes:
    """One JSON object per line."""
    return b"".join(json_bytes(look, indent=None) for look in curve)


def read_curve(data: bytes, sha256: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """The looks, and what is wrong with the file, if anything.

    `sha256` is the checksum of the whole file: with another there are no looks, since none can be trusted. Without one
    (`None`, from before there were any) the looks are those before the first line that is none.
    """
    looks: list[dict[str, Any]] = []
    if sha256 is not None and digest.of_bytes(data) != sha256:
        return looks, "the curve is not the one that was stored with the run's record; left out"
    try:
        for line in data.decode().splitlines():
            looks.append(_look(line))
    except (ValueError, RecursionError):
        return looks, f"the curve is damaged after {len(looks)} lines; the rest is left out"
    return looks, None


def _look(line: str) -> dict[str, Any]:
    """Raises `ValueError` for what no run writes."""
    look = json.loads(line)
    try:
        metrics = [metric for score in (look.get("valid") or {}).values() for metric in score.values()]
        whole = type(look["step"]) is int and all(isinstance(metric, int | float | None) for metric in metrics)
    except (AttributeError, KeyError, TypeError):
        whole = False
    if not whole:
        raise ValueError("is no look")
    return dict(look)

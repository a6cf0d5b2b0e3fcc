"""The kinds of what mclab reads: each with its attack, and the run folder that stands as runs/it before it."""

from tests.attack import given, stored
from tests.attack.given import Attack
from tests.attack.stored import JSON, NDJSON

_FOLDER = ("records/*", "curves/*", "plan.json", "grid.yaml", "lock")
_SEARCH = ("journal.log", "journal.log", "journal.log", "journal.log", "space.yaml", "trials.json", "records/*")

KINDS: dict[str, tuple[Attack, str | None]] = {
    "grid": (given.grid, None),
    "space": (given.space, None),
    "overrides": (given.overrides, None),
    "command_lines": (given.command_lines, "grid"),
    "module": (given.module, None),
    "plan": (stored.stored("grid", "plan.json", JSON, drawn=0.1), "grid"),
    "record": (stored.stored("grid", "records/*", JSON, drawn=0.1), "grid"),
    "curve": (stored.stored("grid", "curves/*", NDJSON, drawn=0.2), "grid"),
    "trials": (stored.stored("search", "trials.json", JSON, drawn=0.1), "search"),
    "grid_again": (stored.again("grid", _FOLDER, JSON), "grid"),
    "journal": (stored.again("search", _SEARCH, NDJSON), "search"),
    "flight": (stored.flight, "grid"),
    "weights": (stored.weights, "grid"),
    "checkpoint": (stored.checkpoint, "half"),
}

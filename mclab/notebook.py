"""This module runs a grid from Python, for example in a notebook, and returns a frame of results (`mclab.run`)."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mclab.cli.options import default_out
from mclab.cli.progress import progress
from mclab.config.options import RunOptions
from mclab.config.strict import ConfigError
from mclab.plan.grid import load_plan, plan_from
from mclab.plan.loader import read
from mclab.plan.plan import Plan
from mclab.plan.source import Source
from mclab.runner import Progress
from mclab.verbs.ablate import ablate
from mclab.verbs.load import frame

if TYPE_CHECKING:
    import polars as pl

#: The name of a grid without a file, in messages. The names of its plan and its folder also have a hash of the content.
NAME = "grid"


def run(
    grid: str | Path | Mapping[str, Any],
    out: str | Path | None,
    workers: int | str,
    overrides: str | Sequence[str],
    quiet: bool,
) -> "pl.DataFrame":
    """Run a grid and return the frame of its results. See `mclab.run`."""
    plan, content = _planned(grid, [overrides] if isinstance(overrides, str) else list(overrides))
    where = default_out(plan.name, smoke=False) if out is None else Path(out)
    try:
        with _silent() if quiet else progress() as (show, say):
            report = ablate(plan, where, RunOptions(workers=workers), grid=content, say=say, progress=show)
            say(report.summary_line())
    except ConfigError as error:
        error.renamed("--workers: ", "workers: ")
        raise
    if report.summary.interrupted:
        raise KeyboardInterrupt
    if report.unwritten:
        raise ConfigError(*report.unwritten)
    return frame(where)


@contextmanager
def _silent() -> Iterator[tuple[Callable[[Progress], None], Callable[[str], None]]]:
    yield (lambda now: None), (lambda line: None)


def _planned(grid: str | Path | Mapping[str, Any], overrides: list[str]) -> tuple[Plan, bytes]:
    """Return the plan of a grid, and the grid as the bytes of its file, or of the file that it would make."""
    if isinstance(grid, Path) or (isinstance(grid, str) and not _is_yaml(grid)):
        content = read(grid)
        return load_plan(grid, overrides, content=content), content
    if isinstance(grid, str):
        content = grid.encode("utf-8", "surrogatepass")  # the loader reports what is not valid text
        return _named(load_plan(NAME, overrides, content=content), content, overrides), content
    if not isinstance(grid, Mapping):
        raise ConfigError(f"grid: must be a path, a YAML text or a mapping, not {type(grid).__name__}")
    data, content = _as_json(grid)
    return _named(plan_from(data, NAME, overrides, source=Source(NAME)), content, overrides), content


def _is_yaml(text: str) -> bool:
    """Return whether `text` is a grid and not a path: it has several lines, or a key with its value."""
    return "\n" in text or ": " in text


def _as_json(grid: Mapping[str, Any]) -> tuple[Any, bytes]:
    """Return a mapping as JSON, which is YAML too: lists for tuples, texts for keys."""
    try:
        text = json.dumps(grid, indent=1, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{NAME}: values must be numbers, texts, true, false, null, or lists or mappings of them: {error}"
        ) from None
    return json.loads(text), text.encode()


def _named(plan: Plan, content: bytes, overrides: Sequence[str]) -> Plan:
    """Return `plan` with a hash of `content` and `overrides` added to its name.

    So a different grid gets a different folder, and the same grid continues in its folder.
    """
    digest = sha256(b"\0".join([content, *(word.encode() for word in overrides)])).hexdigest()
    return replace(plan, name=f"{NAME}-{digest[:8]}")

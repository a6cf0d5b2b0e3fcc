"""Stored runs as a polars frame: one row per run, one column per figure."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.store.record import figures_of

if TYPE_CHECKING:
    import polars as pl


def frame_of(runs: Iterable[StoredRun]) -> "pl.DataFrame":
    """Return a frame with one row per run. Polars is imported here.

    Columns: run_id, science, seed, status, the config's dotted keys, the figures, `provenance.*`, and `versions` if a
    part of some run is not at its first version. Runs with different `versions` must not be compared.

    `test_accuracy` is over the task's own slices, `test_accuracy[pairs=16]` over one slice. The columns `valid_…`,
    `…_loss` and `…_token_accuracy` are named in the same way. `without_recall.bigram` is the accuracy of that predictor
    over the task's own slices. A key that a run does not have is null.
    """
    import polars as pl

    rows = [dict(_flat(run)) for run in runs]
    return pl.from_dicts(rows, infer_schema_length=None, strict=False) if rows else pl.DataFrame()


def _flat(run: StoredRun) -> Iterator[tuple[str, object]]:
    yield from (("run_id", run.run_id), ("science", run.science), ("seed", run.seed), ("status", run.status))
    yield from ((path, value) for path, value in run.keys.items() if path != "seed")
    for split, scores in (("valid", run.valid), ("test", run.test)):
        for name, score in scores.items():
            suffix = "" if name == ALL else f"[{name}]"
            yield from ((f"{split}_{metric}{suffix}", value) for metric, value in score.metrics.items())
    yield from ((key, value) for key, value in figures_of(run).items() if key not in _SPREAD)
    for predictor, value in (run.without_recall or {}).get(ALL, {}).items():
        yield f"without_recall.{predictor}", value
    if run.versions or run.words:
        yield "versions", ", ".join(f"{part} {version}" for part, version in {**run.versions, **run.words}.items())
    yield from run.unknown.items()
    yield from ((f"provenance.{key}", value) for key, value in (run.provenance or {}).items())


#: Figures for which `_flat` yields other columns.
_SPREAD = frozenset({"status", "valid", "test", "without_recall", "provenance"})

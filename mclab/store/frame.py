"""Records as a polars frame: one row per run, one column per figure."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mclab.config.outcome import ALL
from mclab.store.record import Record

if TYPE_CHECKING:
    import polars as pl


def frame_of(records: Iterable[Record]) -> "pl.DataFrame":
    """Columns: run_id, science, seed, status, the config's dotted keys, the figures, `provenance.*`.

    A score is `test_accuracy` over the task's own slices and `test_accuracy[pairs=16]` for one; `valid_…`, `…_loss` and
    `…_token_accuracy` alike. A key that a run has not is null. Needs polars, imported here.
    """
    import polars as pl

    rows = [dict(_flat(record)) for record in records]
    return pl.from_dicts(rows, infer_schema_length=None, strict=False) if rows else pl.DataFrame()


def _flat(record: Record) -> Iterator[tuple[str, Any]]:
    yield from ((key, record[key]) for key in ("run_id", "science", "seed", "status"))
    yield from ((path, value) for path, value in record["config"].items() if path != "seed")
    for split in ("valid", "test"):
        for name, score in record[split].items():
            suffix = "" if name == ALL else f"[{name}]"
            yield from ((f"{split}_{metric}{suffix}", value) for metric, value in score.items())
    yield from ((key, value) for key, value in record.items() if key not in _SPREAD)
    yield from ((f"provenance.{key}", value) for key, value in (record["provenance"] or {}).items())


#: What stands in the frame under other names, or has been yielded already.
_SPREAD = frozenset({"run_id", "science", "seed", "status", "config", "valid", "test", "provenance"})

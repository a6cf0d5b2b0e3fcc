"""Stored runs made up by hand: what the store would read of runs that were never trained, and what it would keep."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mclab.config.ids import SCIENCE, run_id
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.run import RunConfig, Status
from mclab.config.stored import StoredRun, StoredScore
from mclab.config.strict import leaves
from mclab.store.files import json_bytes
from mclab.store.record import signed


def stored_run(config: RunConfig | None = None, status: Status = "done", **figures: Any) -> StoredRun:
    """A run of this config (by default the default one) with these figures; what is not given is `None` or empty."""
    config = config or RunConfig()
    return StoredRun(
        run_id=run_id(config),
        **{"science": SCIENCE, "seed": config.seed, "keys": dict(leaves(config)), "config": config, "status": status}
        | figures,
    )


def score(accuracy: float, loss: float | None = 1.0, **more: float | None) -> StoredScore:
    """A score with its metrics."""
    return StoredScore({"accuracy": accuracy, "loss": loss, **more})


def scores(
    parts: Iterable[str], accuracy: float, loss: float | None = 1.0, **more: float | None
) -> dict[str, StoredScore]:
    """The same score on all slices and on each of `parts`."""
    return dict.fromkeys((ALL, *parts), score(accuracy, loss, **more))


def with_metrics(found: StoredScore, **changes: float | None) -> StoredScore:
    """The score with metrics changed or added."""
    return StoredScore({**found.metrics, **changes})


def measured(config: RunConfig, *metrics: float) -> dict[str, Score]:
    """The same score on all slices and on each of the run's own, as training measures it."""
    return dict.fromkeys((ALL, *config.task.slices), Score(*metrics or (0.5, 1.0)))


def done(config: RunConfig, *metrics: float, **figures: Any) -> Outcome:
    """The outcome of a run that ended well, with the same score everywhere unless `figures` has others."""
    found = measured(config, *metrics)
    return Outcome("done", **{"valid": found, "test": found, **figures})


def altered(data: bytes, *gone: str, **changes: Any) -> bytes:
    """A record with keys changed, added or taken away, and signed again: what another version could have written."""
    record = {key: value for key, value in json.loads(data).items() if key not in gone}
    return json_bytes(signed({**record, **changes}))


def alter(path: Path, *gone: str, **changes: Any) -> None:
    """As `altered`, in the record's file."""
    path.write_bytes(altered(path.read_bytes(), *gone, **changes))


def unsigned(data: bytes) -> bytes:
    """A record as it was written before there were checksums."""
    return json_bytes({key: value for key, value in json.loads(data).items() if "sha256" not in key})

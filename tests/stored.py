"""Stored runs made up by hand: what the store would read of runs that were never trained."""

from collections.abc import Iterable
from typing import Any

from mclab.config.outcome import ALL
from mclab.config.run import SCIENCE, RunConfig, Status, run_id
from mclab.config.stored import StoredRun, StoredScore
from mclab.config.strict import leaves


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

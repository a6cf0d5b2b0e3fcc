"""A run as the store gives it to all that read it: planning, running, tables, plots, listings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mclab.config.run import RunConfig, Status


@dataclass(frozen=True)
class StoredScore:
    """The metrics of one slice under their names, as a record holds them.

    `mclab.config.outcome.Score` is what training measures. A record may hold less (one from before a metric was
    measured, a loss that was no number) and more (a metric of another version), so the mapping is kept as it is.
    """

    metrics: Mapping[str, float | None]

    @property
    def accuracy(self) -> float:
        """The share of answers that are right as a whole: the one metric that every score has."""
        value = self.metrics["accuracy"]
        assert value is not None, "a score without an accuracy counts as damaged"
        return value

    @property
    def loss(self) -> float | None:
        """The mean cross-entropy in nats; `None` where it was no finite number."""
        return self.metrics.get("loss")

    @property
    def token_accuracy(self) -> float | None:
        """The share of right tokens; `None` in records from before it was measured."""
        return self.metrics.get("token_accuracy")


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One run's record. The figures are those of `mclab.config.outcome.Outcome`; one that it lacks is `None`.

    `keys` is the config as it stands in the record, value by dotted path. `config` is the run that the keys describe;
    `None` in a record of another science version whose keys describe no run in this one. `unknown` holds what the
    record has beyond all this, for a record of a later version.
    """

    run_id: str
    science: int
    seed: int
    keys: Mapping[str, object]
    config: RunConfig | None
    status: Status
    steps: int | None = None
    valid: Mapping[str, StoredScore] = field(default_factory=dict)
    test: Mapping[str, StoredScore] = field(default_factory=dict)
    steps_to_99: int | None = None
    overlap: float | None = None
    params: int | None = None
    state_fixed: int | None = None
    state_cached: int | None = None
    tokens_per_s: float | None = None
    wall_s: float | None = None
    diverged_step: int | None = None
    error: str | None = None
    provenance: Mapping[str, object] | None = None
    unknown: Mapping[str, object] = field(default_factory=dict)

    def fact(self, *names: str) -> str | None:
        """The first of these facts of the provenance that is known, as text."""
        known = self.provenance or {}
        return next((str(known[name]) for name in names if known.get(name) is not None), None)

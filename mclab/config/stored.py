"""A run as the store gives it to all that read it: planning, running, tables, plots, listings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mclab.config.baselines import completed
from mclab.config.run import RunConfig, Status
from mclab.config.versions import parts


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

    @property
    def value_accuracy(self) -> float | None:
        """The share of right values where an answer is several; `None` too in records from before it was measured."""
        return self.metrics.get("value_accuracy")

    @property
    def values_found(self) -> float | None:
        """The share of values that a free answer holds in any place; `None` as `value_accuracy` is, and on valid."""
        return self.metrics.get("values_found")


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One run's record. The figures are those of `mclab.config.outcome.Outcome`; one that it lacks is `None`.

    `keys` is the config as in the record, value by dotted path. `config` is the run that the keys describe;
    `None` in a record of another science version whose keys describe no run in this one. `versions` are the versions
    that the parts of the run had then, of those not at their first, and `words` the changed defaults behind the names
    of its pattern (`mclab.config.ids.moved_defaults`). `sha256` is the record's checksum, `curve_sha256` that of
    the file with its curve; both `None` in a record from before there were any. `unknown` holds what the record has
    beyond all this, for a record of a later version.
    """

    run_id: str
    science: int
    seed: int
    keys: Mapping[str, object]
    config: RunConfig | None
    status: Status
    versions: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, object] = field(default_factory=dict)
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
    without_recall: Mapping[str, Mapping[str, float]] | None = None
    provenance: Mapping[str, object] | None = None
    curve_sha256: str | None = None
    sha256: str | None = None
    unknown: Mapping[str, object] = field(default_factory=dict)

    @property
    def made_with(self) -> dict[str, str]:
        """The version of every part of the run, and the changed defaults behind the names of its pattern. Runs in which
        these differ are not compared."""
        known = {part: str(self.versions.get(part, 1)) for part in (parts(self.config) if self.config else ())}
        return {**known, **{f"pattern {key}": str(value) for key, value in self.words.items()}}

    def fact(self, *names: str) -> str | None:
        """The first of these facts of the provenance that is known, as text."""
        known = self.provenance or {}
        return next((str(known[name]) for name in names if known.get(name) is not None), None)


def restored(keys: Mapping[str, object]) -> RunConfig:
    """The run that a record's dotted keys describe. A key that did not exist yet means what the code did without it.

    Raises `ValueError`, `TypeError` or `AttributeError` where they describe none.
    """
    nested: dict[str, Any] = {}
    for path, value in completed(keys).items():
        *sections, key = path.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return RunConfig.model_validate(nested)


def clashing(runs: Iterable[StoredRun]) -> dict[str, tuple[str, ...]]:
    """The parts that were of different versions in these runs, with the versions."""
    found: dict[str, set[str]] = {}
    many = list(runs)
    if any(run.versions or run.words for run in many):
        for run in many:
            for part, version in run.made_with.items():
                found.setdefault(part, set()).add(version)
    return {part: tuple(sorted(several)) for part, several in sorted(found.items()) if len(several) > 1}

"""A stored run, as the store returns it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mclab.config.baselines import completed
from mclab.config.run import RunConfig, Status
from mclab.config.versions import parts


@dataclass(frozen=True)
class StoredScore:
    """The metrics of one slice by name, as a record holds them.

    `mclab.config.outcome.Score` is what training measures. A record may lack a metric (because it is older than the
    metric, or the loss was not a finite number), and may have additional metrics of another version of mclab. Therefore
    the mapping is kept unchanged.
    """

    metrics: Mapping[str, float | None]

    @property
    def accuracy(self) -> float:
        """The share of answers with every token right. Every score has this metric."""
        value = self.metrics["accuracy"]
        assert value is not None, "a score without an accuracy counts as damaged"
        return value

    @property
    def loss(self) -> float | None:
        """The mean cross-entropy in nats; `None` if it was not a finite number."""
        return self.metrics.get("loss")

    @property
    def token_accuracy(self) -> float | None:
        """The share of right tokens; `None` in records that are older than this metric."""
        return self.metrics.get("token_accuracy")

    @property
    def value_accuracy(self) -> float | None:
        """The share of right values; `None` if an answer is one value, and in records older than this metric."""
        return self.metrics.get("value_accuracy")

    @property
    def values_found(self) -> float | None:
        """The share of values that occur anywhere in a freely generated answer.

        `None` on valid, and whenever `value_accuracy` is `None`.
        """
        return self.metrics.get("values_found")


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """The record of one run. The figures are those of `mclab.config.outcome.Outcome`; a missing figure is `None`.

    `keys` is the config as in the record: dotted path -> value. `config` is the run that `keys` describes; it is `None`
    in a record of another `science` version whose keys describe no run in this version. `versions` holds the versions
    that the parts of the run had then, except parts at version 1. `words` holds the changed defaults behind the names
    of its pattern (`mclab.config.ids.moved_defaults`). `sha256` is the checksum of the record, `curve_sha256` that of
    the file with its curve; both are `None` in records that are older than checksums. `unknown` holds all further
    content of the record, which a later version of mclab may have written.
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
        """The version of every part of the run, and what the names of its pattern stood for where a default has
        changed.

        Two runs that differ in this are not compared.
        """
        known = {part: str(self.versions.get(part, 1)) for part in (parts(self.config) if self.config else ())}
        return {**known, **{f"pattern {key}": str(value) for key, value in self.words.items()}}

    def fact(self, *names: str) -> str | None:
        """Return as text the first fact among `names` that the provenance has; `None` if it has none of them."""
        known = self.provenance or {}
        return next((str(known[name]) for name in names if known.get(name) is not None), None)


def restored(keys: Mapping[str, object]) -> RunConfig:
    """Return the run that the dotted keys of a record describe. Keys that are newer than the record have their
    baselines.

    Raises `ValueError`, `TypeError` or `AttributeError` if the keys describe no run.
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
    """Return {part: its versions} for the parts whose versions differ between these runs (parts as in `made_with`)."""
    found: dict[str, set[str]] = {}
    many = list(runs)
    if any(run.versions or run.words for run in many):
        for run in many:
            for part, version in run.made_with.items():
                found.setdefault(part, set()).add(version)
    return {part: tuple(sorted(several)) for part, several in sorted(found.items()) if len(several) > 1}

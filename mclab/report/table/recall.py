"""The baseline without recall: what the best predictor that looks at no key scores on a cell's own test.

Whether a cell is above it is a one-sided paired t test over seeds, not adjusted for the number of cells.

See docs/equations.md#trivial-predictors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.report.stats import exceeds


@dataclass(frozen=True)
class Best:
    """A predictor's name and its accuracy, mean over seeds."""

    name: str
    accuracy: float


@dataclass(frozen=True)
class WithoutRecall:
    """The best predictor by slice, and under `ALL` that over the task's own slices.

    `above`: by test the cell exceeds the latter.
    """

    best: dict[str, Best]
    above: bool

    def accuracy(self, part: str = ALL) -> float | None:
        """Of the best predictor on a slice; `None` on one that was not tested then."""
        return self.best[part].accuracy if part in self.best else None


def without_recall(records: Mapping[int, StoredRun], scores: Mapping[int, float]) -> WithoutRecall | None:
    """Of a cell's records and accuracies by seed; `None` where a scored record is from before it was stored."""
    known = {seed: records[seed].without_recall or {} for seed in scores}
    parts = [part for part in next(iter(known.values()), {}) if all(found.get(part) for found in known.values())]
    if ALL not in parts:
        return None
    best = {part: _best([found[part] for found in known.values()]) for part in parts}
    return WithoutRecall(best, exceeds([scores[seed] - known[seed][ALL][best[ALL].name] for seed in scores]))


def above(records: Mapping[int, StoredRun], parts: Sequence[str]) -> bool:
    """Is the mean accuracy over these slices above that of the best predictor on each, by the same test?

    True too where the records are from before the predictors' accuracies were stored.
    """
    done = [record for record in records.values() if record.status == "done" and all(p in record.test for p in parts)]
    known = [record.without_recall or {} for record in done]
    if not done or not all(found.get(part) for found in known for part in parts):
        return True
    best = {part: _best([found[part] for found in known]).name for part in parts}
    gaps = [
        fmean(record.test[part].accuracy - found[part].get(best[part], 0.0) for part in parts)
        for record, found in zip(done, known, strict=True)
    ]
    return exceeds(gaps)


def _best(seeds: Sequence[Mapping[str, float]]) -> Best:
    """The first of equal ones; a predictor that some seed lacks counts as 0 there."""
    means = {name: fmean(named.get(name, 0.0) for named in seeds) for name in seeds[0]}
    name = max(means, key=lambda each: means[each])
    return Best(name, means[name])

"""Seeds until told, simulated: familywise error, power and mean number of seeds, beside fixed numbers of seeds.

Every grid has a baseline and m rows; the scores of a cell are normal, skewed or bimodal, and the differences share the
baseline's. An effect d, in standard deviations of a paired difference, is added to every row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from mclab.plan.seeds import ERROR, Until
from mclab.report.sequential import Looks
from mclab.report.stats import holm

GRIDS, ROWS, EFFECTS = 2000, (2, 5, 10), (1.0, 2.0)
Scores = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Scores]


def _bimodal(rng: np.random.Generator, size: tuple[int, ...]) -> Scores:
    """Half of the seeds learn, and differ little; the others stay at chance."""
    return rng.integers(0, 2, size) + rng.normal(0, 0.05, size)


#: The scores of one cell over seeds, up to place and scale.
SHAPES: Mapping[str, Draw] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: -rng.exponential(size=size),
    "bimodal": _bimodal,
}


#: The standard deviations of their paired differences.
SPREADS = {"normal": 2**0.5, "skewed": 2**0.5, "bimodal": (2 * (0.25 + 0.05**2)) ** 0.5}


@dataclass(frozen=True)
class Outcome:
    """Of many grids: `any` is the share with a row told, `each` that of rows told, `seeds` the mean of a row."""

    any: float
    each: float
    seeds: float


def gaps_of(shape: str, rows: int, effect: float, seeds: int, rng: np.random.Generator) -> Scores:
    """Paired differences of one grid [rows, seeds]."""
    scores = SHAPES[shape](rng, (rows + 1, seeds))
    return scores[1:] - scores[0] + effect * SPREADS[shape]


def sequential(gaps: Scores, rule: Until) -> tuple[int, float]:
    """Rows told and mean number of seeds of a row, in one grid."""
    looks = Looks(rule, range(len(gaps)))
    for n in rule.looks:
        looks.take({row: list(gaps[row, :n]) for row in looks.open})
    told = sum(each.state in ("better", "worse") for each in looks.settled.values())
    return told, float(np.mean([each.gap.n for each in looks.settled.values()]))


def fixed(gaps: Scores, seeds: int) -> tuple[int, float]:
    """The same of Holm's procedure at a fixed number of seeds."""
    return int((np.array(_holm(gaps[:, :seeds])) <= ERROR).sum()), seeds


def uncorrected(gaps: Scores, rule: Until) -> tuple[int, float]:
    """The same of Holm's procedure at every look, without correction, up to the first look that tells a row."""
    stops = np.full(len(gaps), rule.most)
    for n in reversed(rule.looks):
        stops[np.array(_holm(gaps[:, :n])) <= ERROR] = n
    told = sum(any(_holm(gaps[:, :n])[row] <= ERROR for n in rule.looks) for row in range(len(gaps)))
    return told, float(stops.mean())


def _holm(gaps: Scores) -> list[float]:
    n = gaps.shape[1]
    t = np.abs(gaps.mean(1)) * np.sqrt(n) / gaps.std(1, ddof=1)
    return [p if p is not None else 1.0 for p in holm(list(2 * stdtr(n - 1, -t)))]


#: The procedures that are compared.
PROCEDURES: Mapping[str, Callable[[Scores], tuple[int, float]]] = {
    "Holm at every look, not corrected": lambda gaps: uncorrected(gaps, Until()),
    "until told": lambda gaps: sequential(gaps, Until()),
    "fixed 10": lambda gaps: fixed(gaps, 10),
    "fixed 20": lambda gaps: fixed(gaps, 20),
}


def simulate(
    decide: Callable[[Scores], tuple[int, float]], shape: str, rows: int, effect: float, grids: int, seed: int = 0
) -> Outcome:
    """Many grids, decided one by one."""
    rng = np.random.default_rng(seed)
    found = [decide(gaps_of(shape, rows, effect, 20, rng)) for _ in range(grids)]
    told = np.array([number for number, _ in found])
    return Outcome(float((told > 0).mean()), float(told.mean() / rows), float(np.mean([seeds for _, seeds in found])))


def main() -> None:
    """The table, in markdown."""
    heads = [f"error {shape} m = {'/'.join(map(str, ROWS))}" for shape in SHAPES]
    heads += [f"{what} d = {d:g}" for d in EFFECTS for what in ("power", "seeds")]
    print(f"\nseeds until told, {GRIDS} grids a figure; power and seeds of normal differences, m as in errors (%, n)")
    print("| procedure | " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * len(heads))
    for name, decide in PROCEDURES.items():
        cells = []
        for shape in SHAPES:
            errors = [simulate(decide, shape, rows, 0.0, GRIDS).any for rows in ROWS]
            cells.append(" / ".join(f"{100 * error:.1f}" for error in errors))
        for effect in EFFECTS:
            found = [simulate(decide, "normal", rows, effect, GRIDS) for rows in ROWS]
            cells.append(" / ".join(f"{100 * each.each:.0f}" for each in found))
            cells.append(" / ".join(f"{each.seeds:.1f}" for each in found))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)

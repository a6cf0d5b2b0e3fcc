"""Seeds until told, run: rows stop when they are settled, the baseline goes on, and an interrupt changes nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mclab.config.options import ALONE
from mclab.config.outcome import ALL, Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.plan.plan import Plan
from mclab.report.table.frames import cells_of
from mclab.report.table.planned_looks import LooksSoFar, looks_so_far
from mclab.report.table.summary import summarise
from mclab.store import Records
from mclab.verbs.ablate import ablate
from tests.commands import no_plots
from tests.stored import done

GRID = {
    "base": {"task": {"pairs": [4, 8]}},
    "grid": {"model.dim": [16, 24, 32]},
    "seeds": {"until": "told", "looks": [5, 8, 12], "even": 0.02},
}
ROWS = {16: "base", 24: "near", 32: "far"}
#: Noise of a seed, the same in every row but for its sign.
NOISE = [0.004, -0.003, 0.002, -0.005, 0.001, 0.003, -0.002, 0.005, -0.001, 0.002, -0.004, 0.003]
#: A row that differs from the baseline at 0.8 by two thirds of a standard deviation: open to the end.
CLOSE = [0.83 + 0.045 * (-1) ** seed for seed in range(12)]


def outcome(run: RunConfig, means: Mapping[str, Sequence[float] | float]) -> Outcome:
    row = ROWS[run.model.dim]
    mean = means[row]
    value = mean[run.seed] if isinstance(mean, Sequence) else mean + NOISE[run.seed] * (1 if row == "far" else -1)
    trivial = {part: {"any value": 0.15} for part in (ALL, *run.task.slices)}
    return done(run, value, 1 - value, without_recall=trivial, curve=({"step": run.train.steps, "valid": None},))


class Trainer:
    """Notes what it trains; `stop` interrupts before so many runs."""

    def __init__(self, means: Mapping[str, Any], stop: int | None = None) -> None:
        self.means, self.stop, self.runs = means, stop, list[RunConfig]()

    def __call__(self, runs: Sequence[RunConfig], *, device: str, progress: Any = None, keep: Any = None) -> Any:
        if self.stop is not None and len(self.runs) >= self.stop:
            raise KeyboardInterrupt
        self.runs += runs
        return [outcome(run, self.means) for run in runs]

    @property
    def seeds(self) -> dict[str, int]:
        return dict(Counter(ROWS[run.model.dim] for run in self.runs))


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> Any:
    no_plots(monkeypatch)

    def run(plan: Plan, out: Path, train: Trainer, **options: Any) -> Any:
        monkeypatch.setattr("mclab.train.train_pack", train)
        return ablate(plan, out, replace(ALONE, **options), grid=None, say=lambda _: None, progress=lambda _: None)

    return run


def way(out: Path) -> LooksSoFar:
    records = Records(out)
    plan = records.plan()
    assert plan is not None
    return looks_so_far(plan, records.lookup, records.curve)


def plan_of(**more: Any) -> Plan:
    return plan_from({**GRID, **more}, "g")


def test_rows_that_are_told_stop_and_the_baseline_goes_on_while_one_is_open(tmp_path: Path, go: Any) -> None:
    """`far` is far below at once. `near` is open to the end."""
    train = Trainer({"base": 0.80, "near": CLOSE, "far": 0.5})
    report = go(plan_of(), tmp_path, train)
    assert train.seeds == {"base": 12, "near": 12, "far": 5}
    assert (report.summary.missing, report.exit_code) == (0, 0)
    found = way(tmp_path)
    assert {place: result.state for place, result in found.results.items()} == {1: "open", 2: "worse"}
    assert [result.n for result in found.results.values()] == [12, 5]
    frame = cells_of(summarise(report.plan, report.lookup, report.curve))
    assert frame["n"].to_list() == [12, 12, 5]


def test_an_even_row_stops_and_with_it_the_grid(tmp_path: Path, go: Any) -> None:
    train = Trainer({"base": 0.80, "near": [0.8 - n for n in NOISE], "far": 0.5})
    go(plan_of(), tmp_path, train)
    assert {result.state for result in way(tmp_path).results.values()} == {"identical", "worse"}
    even = Trainer({"base": 0.80, "near": [0.8001 - n for n in NOISE], "far": 0.5})
    go(plan_of(), tmp_path / "even", even)
    assert even.seeds == {"base": 5, "near": 5, "far": 5}
    assert {result.state for result in way(tmp_path / "even").results.values()} == {"even", "worse"}


@pytest.mark.parametrize("stop", [3, 15, 24])
def test_interrupted_and_resumed_it_comes_to_the_same(tmp_path: Path, go: Any, stop: int) -> None:
    means = {"base": 0.80, "near": CLOSE, "far": 0.5}
    whole = Trainer(means)
    go(plan_of(), tmp_path / "whole", whole)
    first, second = Trainer(means, stop), Trainer(means)
    assert go(plan_of(), tmp_path / "parts", first).summary.interrupted
    go(plan_of(), tmp_path / "parts", second)
    assert len(first.runs) == stop
    assert Counter([*first.runs, *second.runs]) == Counter(whole.runs)
    assert way(tmp_path / "parts") == way(tmp_path / "whole")
    again = Trainer(means)
    go(plan_of(), tmp_path / "parts", again)
    assert again.runs == []


def test_the_learning_rate_is_chosen_once(tmp_path: Path, go: Any) -> None:
    select = {"over": {"train.lr": [0.001, 0.01]}, "seeds": 2}
    train = Trainer({"base": 0.80, "near": CLOSE, "far": 0.5})
    go(plan_of(select=select), tmp_path, train)
    assert train.seeds == {"base": 14, "near": 14, "far": 7}
    assert {run.train.lr for run in train.runs if run.seed >= 2} == {0.001}


def test_a_row_at_chance_gets_no_verdict_and_no_more_seeds(tmp_path: Path, go: Any) -> None:
    train = Trainer({"base": 0.80, "near": 0.79, "far": 0.14})
    go(plan_of(), tmp_path, train)
    assert train.seeds["far"] == 5
    result = way(tmp_path).results[2]
    assert (result.state, result.why, result.p) == ("unmended", "at chance", None)


def test_where_the_baseline_is_at_chance_nothing_follows(tmp_path: Path, go: Any) -> None:
    train = Trainer({"base": 0.14, "near": 0.79, "far": 0.5})
    go(plan_of(), tmp_path, train)
    assert train.seeds == {"base": 5, "near": 5, "far": 5}
    assert {result.why for result in way(tmp_path).results.values()} == {"the baseline: at chance"}


def test_no_row_is_settled_at_the_first_look_with_a_seed_that_did_not_learn(tmp_path: Path, go: Any) -> None:
    """Four of five seeds far above the baseline would be told at five; at eight, with seven that learned, they are."""
    mixed = [0.15, *[0.9 + n for n in NOISE[1:]]]
    learning = Trainer({"base": 0.3, "near": mixed, "far": [0.9 + n for n in NOISE]})
    go(plan_of(), tmp_path, learning)
    found = way(tmp_path).results
    assert (found[2].state, found[2].n) == ("better", 5)
    assert found[1].n > 5


def test_a_row_whose_run_failed_does_not_keep_the_others(tmp_path: Path, go: Any) -> None:
    class Failing(Trainer):
        def __call__(self, runs: Sequence[RunConfig], **more: Any) -> Any:
            if runs[0].seed == 3 and runs[0].model.dim == 32:
                return [Outcome("failed", error="out of luck")]
            return super().__call__(runs, **more)

    means = {"base": 0.80, "near": CLOSE, "far": 0.5}
    failing = Failing(means)
    go(plan_of(), tmp_path, failing)
    assert failing.seeds == {"base": 12, "near": 12, "far": 4}
    assert way(tmp_path).results[2].state == "failed"
    mended = Trainer(means)
    go(plan_of(), tmp_path, mended, retry_failed=True)
    assert mended.seeds == {"far": 1}
    assert way(tmp_path).results[2].state == "worse"


def test_other_looks_are_refused_and_fixed_seeds_are_marked(tmp_path: Path, go: Any) -> None:
    means = {"base": 0.80, "near": 0.7, "far": 0.5}
    go(plan_of(), tmp_path, Trainer(means))
    with pytest.raises(ConfigError, match="margin or baseline; give --extend"):
        go(plan_of(grid={"model.dim": [24, 16, 32]}), tmp_path, Trainer(means))
    for other in ({"looks": [5, 8]}, {"looks": [5, 8, 12], "even": 0.05}, {"looks": [5, 8, 12], "shares": [0.01] * 3}):
        plan = plan_of(seeds={"until": "told", **other})
        with pytest.raises(ConfigError, match="other looks, shares, margin or baseline; give --extend"):
            go(plan, tmp_path, Trainer(means))
    assert go(plan_of(), tmp_path, Trainer(means)).plan.looked == ()
    extended = go(plan_of(seeds={"until": "told", "looks": [5, 9]}), tmp_path, Trainer(means), extend=True)
    assert extended.plan.looked == (5,)
    assert go(plan_of(seeds="0..8"), tmp_path, Trainer(means)).plan.looked == (5, 5)


def test_seeds_added_to_fixed_ones_are_a_look_that_nobody_planned(tmp_path: Path, go: Any) -> None:
    means = {"base": 0.80, "near": 0.7, "far": 0.5}
    assert go(plan_of(seeds="0..3"), tmp_path, Trainer(means, 2)).plan.looked == ()
    assert go(plan_of(seeds="0..4"), tmp_path, Trainer(means)).plan.looked == ()  # nothing was there to be seen
    assert go(plan_of(seeds="0..4"), tmp_path, Trainer(means)).plan.looked == ()
    assert go(plan_of(seeds="0..7"), tmp_path, Trainer(means)).plan.looked == (5,)
    assert go(plan_of(seeds="0..7"), tmp_path, Trainer(means)).plan.looked == (5,)

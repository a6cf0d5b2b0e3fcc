"""What a plan would run: sizes, what is stored, what stands in the way."""

from dataclasses import replace
from pathlib import Path

import pytest

from mclab.cli.dry_run import preview_text
from mclab.config.options import ALONE
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.plan.plan import Cell
from mclab.report.seeds import wanted_by
from mclab.runner import execute
from mclab.runner.estimate import duration
from mclab.runner.memory_limits import Machine, needs
from mclab.store import Records, Store
from mclab.verbs.dry_run import preview
from mclab.workers.cores import Processors
from tests.stored import done

GRID = {
    "grid": {"model.mixer.gate": ["context", "none"]},
    "select": {"over": {"train.lr": [0.001, 0.01]}, "by": "valid.accuracy", "seeds": 2},
    "seeds": "0..4",
}
PLAN = plan_from(GRID, "g")


def run_of(cell: Cell) -> RunConfig:
    return next(iter(cell.candidates[0].runs.values()))


def train(runs: list[RunConfig], **_: object) -> list[Outcome]:
    return [done(run) for run in runs]


def test_nothing_stored_yet(tmp_path: Path) -> None:
    found = preview(PLAN, tmp_path / "none")
    assert (found.size.first, found.size.runs, found.stored, found.left) == (8, 14, 0, 14)
    assert [(cell.name, cell.params) for cell in found.cells] == [("gate=context", 25_568), ("gate=none", 23_520)]
    assert list(tmp_path.iterdir()) == []


def test_stored_runs_are_counted_and_the_winners_others_with_them(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.adopt(PLAN)
        execute(plan_from({**GRID, "seeds": "0..1"}, "g"), store, train=train)
        part = preview(PLAN, tmp_path)
        execute(PLAN, store, train=train)
    whole = preview(PLAN, tmp_path)
    assert (part.stored, part.left) == (8, 6)
    assert (whole.stored, whole.left, whole.seconds) == (14, 0, 0)
    assert part.seconds == pytest.approx(preview(PLAN, tmp_path / "none").seconds * 6 / 14)


def test_stored_times_count_and_cells_without_any_are_scaled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that took 1,000 s each: the other seeds of their cells will, and other cells some such time."""
    monkeypatch.setattr("mclab.runner.time_range.processors", lambda: Processors(2, 2, 0.0))

    def slow(runs: list[RunConfig], **_: object) -> list[Outcome]:
        return [done(run, steps=run.train.steps, wall_s=1000.0) for run in runs]

    plain = {"grid": {"model.dim": [16, 24]}}
    with Store(tmp_path) as store:
        execute(plan_from({**plain, "seeds": "0..2"}, "g"), store, train=slow)
    more, wider = (
        plan_from(grid, "g") for grid in ({**plain, "seeds": "0..3"}, {**plain, "grid": {"model.dim": [40]}})
    )
    found, other = preview(more, tmp_path), preview(wider, tmp_path, replace(ALONE, extend=True))
    assert (found.left, found.seconds) == (2, 2000.0)
    assert found.time is not None
    assert found.time.runs == 6
    assert found.as_dict()["stored_runs_used"] == 6
    assert found.time.low < 2000 < found.time.high < 1.6 * 2000
    assert other.seconds > 10 * preview(wider, tmp_path / "none").seconds


def test_many_records_are_not_all_read(tmp_path: Path) -> None:
    """Those that are read are told as damaged."""
    (tmp_path / "records").mkdir()
    for number in range(2000):
        (tmp_path / "records" / f"{number:016x}.json").touch()
    told: list[str] = []
    assert Records(tmp_path, say=told.append).sample(20, 500) == []
    assert len(told) == 20
    assert told[0] != told[-1]
    assert preview(PLAN, tmp_path).stored == 0


def test_the_estimate_grows_with_steps_width_and_looks() -> None:
    def seconds(*overrides: str) -> float:
        return preview(plan_from({}, "g", overrides), Path("nowhere")).seconds

    assert seconds("train.steps=1200") == pytest.approx(2 * seconds(), rel=0.1)
    assert seconds("model.dim=64") > 1.5 * seconds()
    assert seconds("eval.every=5") > seconds("eval.every=50")
    assert 5 < seconds() < 60


def test_what_does_not_fit_into_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    least, most = (need.process for need in reversed(needs((cell.name, run_of(cell)) for cell in PLAN.cells)))
    monkeypatch.setattr("mclab.verbs.dry_run.machine", lambda: Machine((least + most) // 2, 2**40))
    (line,) = preview(PLAN, Path("nowhere")).warnings
    assert line.startswith("1 of 2 cells may not fit into memory: gate=context needs roughly ")
    assert line.endswith("; take train.batch 32")
    (line,) = preview(PLAN, Path("nowhere"), replace(ALONE, pack=4)).warnings
    assert line.startswith("2 of 2 cells may not fit into memory: gate=context needs roughly ")
    assert " for 4 runs together" in line
    (line,) = preview(PLAN, Path("nowhere"), replace(ALONE, workers=3)).warnings
    assert " in 3 processes at the same time" in line
    assert preview(PLAN, Path("nowhere"), replace(ALONE, device="cuda")).warnings == ()


def test_durations() -> None:
    told = [duration(seconds) for seconds in (0.2, 40, 600, 9000, 3_600_000, 1e20)]
    assert told == ["1 s", "40 s", "10 min", "2.5 h", "1000.0 h", "> 1000 h"]


def test_another_grid_in_the_folder_is_a_warning(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.adopt(PLAN)
    other = plan_from(GRID, "g", ["model.dim=16"])
    one = "this one is +2 −2 cells (model.dim 32 → 16)"
    told = f"{tmp_path} holds another grid, compared with which {one}; it needs --extend or another --out"
    assert preview(other, tmp_path).warnings == (told,)
    assert preview(other, tmp_path, replace(ALONE, extend=True)).warnings == ()
    assert preview(PLAN, tmp_path).warnings == ()


def test_a_damaged_plan_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{")
    (line,) = preview(PLAN, tmp_path).warnings
    assert line == (
        f"{tmp_path}/plan.json: the plan is no valid JSON (damaged or cut off); a run renames the "
        "damaged file and continues"
    )


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ConfigError, match="out: this is a file, not a run folder"):
        preview(PLAN, tmp_path / "out")


def test_as_data() -> None:
    facts = preview(PLAN, Path("out")).as_dict()
    assert (facts["runs"], facts["first_runs"], facts["left"], facts["out"]) == (14, 8, 14, "out")
    assert facts["tokens"] == 14 * 600 * 64 * 64
    first = facts["cells"][0]
    assert (first["name"], first["params"], first["values"]) == (
        *("gate=context", 25_568),
        {"model.mixer.gate": "context"},
    )
    assert [candidate["values"] for candidate in first["candidates"]] == [{"train.lr": 0.001}, {"train.lr": 0.01}]


UNTIL = plan_from({**GRID, "seeds": {"until": "told"}}, "g")


def test_seeds_until_told_are_told_from_least_to_most(tmp_path: Path) -> None:
    found = preview(UNTIL, tmp_path / "none")
    assert (found.size.first, found.size.least, found.size.runs) == (8, 8 + 2 * 3, 8 + 2 * 18)
    with Store(tmp_path) as store:
        execute(UNTIL, store, train=train, wanted=wanted_by(UNTIL, store.curve))
    assert preview(UNTIL, tmp_path).stored == 14  # all the same at the first look: nothing more to tell


def test_the_power_of_a_plan_is_told_where_a_deviation_is_given(tmp_path: Path) -> None:
    assert preview(PLAN, tmp_path / "none").power is None
    found = preview(PLAN, tmp_path / "none", effect=0.05, sd=0.03)
    assert found.power is not None
    assert (found.power.rows, found.as_dict()["power"]["effect"]) == (1, 0.05)
    text = preview_text(found)
    assert "standard deviation of paired differences 0.03 (given)" in text
    assert f"is detected in {100 * found.power.power:.0f} % of repetitions" in text
    assert "seeds a row on average" in preview_text(preview(UNTIL, tmp_path / "none", effect=0.05, sd=0.03))
    with pytest.raises(ConfigError, match="give the standard deviation"):
        preview(PLAN, tmp_path / "none", effect=0.05)
    with pytest.raises(ConfigError, match="there is nothing to compare"):
        preview(plan_from({"seeds": "0..4"}, "g"), tmp_path / "none", effect=0.05, sd=0.1)

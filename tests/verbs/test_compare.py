"""Comparing groups: the arithmetic, and which groups there are."""

from pathlib import Path
from typing import Any

import pytest

from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.runner import execute
from mclab.store import Store
from mclab.verbs.compare import comparisons

GATES, INITS = ["context", "input"], ["restart", "checkpoint"]


def value(run: Any) -> float:
    """An accuracy by seed, gate and init: the gate costs 0.2 on even seeds and 0.1 on odd ones, the init 0.1."""
    mixer = run.model.mixer
    cost = (0.2 if run.seed % 2 == 0 else 0.1) * (mixer.gate == "input") + 0.1 * (mixer.init == "checkpoint")
    return 0.9 - 0.01 * run.seed - cost


def ran(out: Path, more: dict[str, Any] | None = None, device: str = "cpu") -> Path:
    def train(runs: Any, **_: object) -> list[Outcome]:
        made = []
        for run in runs:
            score = {part: Score(value(run), 1.0) for part in (ALL, *run.task.slices)}
            made.append(Outcome("done", valid=score, test=score, provenance={"device": device, "torch": "2.11"}))
        return made

    grid = {"grid": {"model.mixer.gate": GATES, "model.mixer.init": INITS}, "seeds": "0..3"}
    plan = plan_from(grid | (more or {}), "g")
    with Store(out) as store:
        store.adopt(plan)
        execute(plan, store, train=train)
    return out


def said(line: str) -> None:
    raise AssertionError(line)


def test_the_difference_is_paired_by_seed_and_its_p_is_not_adjusted(tmp_path: Path) -> None:
    folder = str(ran(tmp_path / "a"))
    (found,) = comparisons([folder, "gate=context, init=restart", "gate=input,init=restart"], said)
    line = found.lines[0]
    # gaps -0.2, -0.1, -0.2, -0.1: mean -0.15, std 0.05774, t = -0.15 / (0.05774 / 2) = -5.196, p(3) = 0.01385
    assert (line.part, line.gap.n, line.gap.kind) == (ALL, 4, "tested")
    assert (line.gap.mean, line.gap.std) == pytest.approx((-0.15, 0.0577350))
    assert line.gap.p == pytest.approx(0.013847, abs=1e-6)
    assert [each.part for each in found.lines] == [ALL, "pairs=4", "pairs=8", "pairs=16"]
    assert found.differs == ("model.mixer.gate context → input",)
    assert found.also == ()


def test_a_filter_that_several_rows_match_is_their_mean_seed_by_seed(tmp_path: Path) -> None:
    folder = str(ran(tmp_path / "a"))
    (found,) = comparisons([folder, "init=restart", "init=checkpoint"], said)
    assert found.first.name == "init=restart (mean of 2 rows)"
    assert found.first.by_seed(ALL) == pytest.approx({0: 0.8, 1: 0.84, 2: 0.78, 3: 0.82})
    assert found.lines[0].gap.kind == "constant"
    assert found.lines[0].gap.mean == pytest.approx(-0.1)


def test_what_else_is_not_equal_is_told(tmp_path: Path) -> None:
    one = ran(tmp_path / "a")
    other = ran(tmp_path / "b", {"base": {"train.steps": 50}, "seeds": "1..5"}, device="cuda")
    (found,) = comparisons([f"{one}:gate=context,init=restart", f"{other}:gate=input, init=restart"], said)
    assert found.differs == ("model.mixer.gate context → input",)
    assert found.also == (
        "train.steps 600 → 50",
        "seeds 0..3 and 1..5; paired over 1..3",
        "devices cpu and cuda",
    )
    assert found.lines[0].gap.n == 3


def test_other_exams_are_compared_on_the_slices_that_both_sat(tmp_path: Path) -> None:
    one, other = ran(tmp_path / "a"), ran(tmp_path / "b", {"base": {"task.pairs": [8, 16]}})
    row = "gate=context, init=restart"
    (found,) = comparisons([f"{one}:{row}", f"{other}:{row}"], said)
    assert [line.part for line in found.lines] == ["pairs=8", "pairs=16"]
    assert "slices, so the means over all of them are not compared" in found.also


def test_two_folders_are_compared_row_by_row(tmp_path: Path) -> None:
    found = comparisons([str(ran(tmp_path / "a")), str(ran(tmp_path / "b"))], said)
    assert [each.first.name for each in found] == [each.second.name for each in found]
    assert len(found) == 4
    assert {line.gap.kind for each in found for line in each.lines} == {"same"}


def test_folders_without_a_common_row_or_a_plan_say_what_to_write(tmp_path: Path) -> None:
    one = ran(tmp_path / "a")
    other = ran(tmp_path / "b", {"grid": {"model.dim": [8, 16]}})
    with pytest.raises(ConfigError, match=r"no row of the same name; write .*a:gate=context, init=restart .*b:8"):
        comparisons([str(one), str(other)], said)
    (tmp_path / "c").mkdir()
    with pytest.raises(ConfigError, match=r"has no plan\.json"):
        comparisons([str(tmp_path / "c"), "x", "y"], said)


@pytest.mark.parametrize("word", ["a" * 5000, f"{'a' * 300}:row"])
def test_what_can_be_no_folder_is_a_line(tmp_path: Path, word: str) -> None:
    with pytest.raises(ConfigError, match=r"^compare: the name aaa.*… has \d+ bytes, but a name has at most 255"):
        comparisons([word, str(ran(tmp_path / "a"))], said)

"""A published table and ours: one number a seed, the differences on both sides, and when they agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from mclab.config.ids import run_id
from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.plan.grid import plan_from
from mclab.plan.loader import parse_value
from mclab.plan.plan import Cell, Plan
from mclab.report.paper.comparison import Held, Reproduction, reproduction
from mclab.report.paper.files import files, frame
from mclab.report.paper.text import terminal_text, verdict_text
from mclab.report.stats import holm, paired
from mclab.report.table.accuracy import EDGE, IMPROVING
from tests.report.plans import record, store
from tests.stored import score

GRID = """
base: {task: {vocab: 64, length: 64, pairs: [4, 8]}, model: {dim: 8}}
changes: {plain: {model.mixer.aggregate: none}, GRM: {}, bare: {model.mixer.gate: none}}
"""
TASKS = "grid: {task: [{name: mqar, vocab: 64, length: 64, pairs: [4, 8]}, {name: ar, vocab: 40}]}\n"
ROWS = """
paper:
  source: Somebody, table 5
  columns: {recall: {where: {task.name: [mqar, ar]}, margin: 0.02}}
  rows:
    plain: {figures: [31.8]}
    GRM: {against: plain, figures: [40.5]}
    bare: {against: GRM, figures: [32.4]}
"""


def plan_of(text: str, seeds: int = 5) -> Plan:
    return plan_from({**parse_value(text), "seeds": list(range(seeds))}, "table")


def made(*rows: Sequence[float], text: str = GRID + ROWS) -> Reproduction:
    """The rows' accuracies by seed, on the one task of the grid."""
    plan = plan_of(text, len(rows[0]))
    return reproduction(plan, store(plan, rows).get)


def only(found: Reproduction, row: str, against: str | None = None) -> Held:
    (one,) = [each for each in found.held if each.row == row and against in (None, each.against)]
    return one


def around(mean: float, n: int = 5, step: float = 0.01) -> list[float]:
    return [mean + step * (seed - (n - 1) / 2) for seed in range(n)]


def differing(base: Sequence[float], by: float, noise: float = 0.004) -> list[float]:
    return [value + by + noise * (1, -1, 0.5, 0.2, -0.7)[seed % 5] for seed, value in enumerate(base)]


PLAIN = around(0.5)


@pytest.mark.parametrize(
    ("by", "noise", "verdict"),
    [(0.1, 0.004, "agrees"), (-0.1, 0.004, "contradicts"), (0.001, 0.004, "even"), (0.03, 0.1, "open")],
)
def test_a_verdict_is_a_matter_of_test_margin_and_side(by: float, noise: float, verdict: str) -> None:
    grm = differing(PLAIN, by, noise)
    found = made(PLAIN, grm, differing(grm, -0.2))
    held = only(found, "GRM")
    assert held.verdict == verdict
    assert held.paper == pytest.approx(8.7)
    assert held.gap.mean == pytest.approx(sum(g - p for g, p in zip(grm, PLAIN, strict=True)) / 5)
    assert only(found, "bare").verdict == "agrees"


def test_an_open_row_says_how_many_seeds_would_tell_it() -> None:
    held = only(made(PLAIN, differing(PLAIN, 0.03, 0.1), differing(PLAIN, -0.2)), "GRM")
    about, safe = held.seeds or (None, None)
    assert about is not None
    assert about > 5
    assert safe is None or safe > about
    assert verdict_text(held).startswith(f"open (about {about:,} seeds, ")


def test_p_is_of_one_number_a_seed_and_of_all_rows_that_are_held() -> None:
    """Two tasks: their mean is one value a seed, so n is the number of seeds, not of runs."""
    text = GRID + TASKS + ROWS
    grm, bare = differing(PLAIN, 0.05, 0.03), differing(PLAIN, 0.02, 0.03)
    rows = {"plain": PLAIN, "GRM": grm, "bare": bare}
    more = {"plain": around(0.8), "GRM": around(0.9, step=0.02), "bare": around(0.7)}
    plan = plan_of(text)
    per_cell = [(rows if cell.values["task"]["name"] == "mqar" else more)[cell.values["change"]] for cell in plan.cells]
    found = reproduction(plan, store(plan, per_cell).get)
    means = {
        name: {seed: (rows[name][seed] + more[name][seed]) / 2 for seed in range(5)}
        for name in ("plain", "GRM", "bare")
    }
    assert found.entries["GRM", "recall"].scores == pytest.approx(means["GRM"])
    gaps = [paired(means["GRM"], means["plain"]), paired(means["bare"], means["GRM"])]
    assert [each.gap.n for each in found.held] == [5, 5]
    assert [each.p for each in found.held] == pytest.approx(holm([gap.p for gap in gaps]))


def test_a_seed_that_lacks_a_task_is_in_no_mean() -> None:
    plan = plan_of(GRID + TASKS + ROWS)
    records = store(plan, [[0.9] * 5 if place else [0.9] * 4 + [None] for place in range(6)])
    found = reproduction(plan, records.get)
    assert list(found.entries["plain", "recall"].scores) == [0, 1, 2, 3]
    assert only(found, "GRM").gap.n == 4


def test_equal_published_figures_agree_with_an_even_row_and_with_no_other() -> None:
    text = (GRID + ROWS).replace("40.5", "31.8")
    grm = differing(PLAIN, 0.001)
    assert only(made(PLAIN, grm, grm, text=text), "GRM").verdict == "agrees"
    assert only(made(PLAIN, differing(PLAIN, 0.1), grm, text=text), "GRM").verdict == "contradicts"


def test_what_is_not_published_is_only_better_or_worse() -> None:
    text = (GRID + ROWS).replace("figures: [32.4]", "figures: [null]")
    grm = differing(PLAIN, 0.1)
    held = only(made(PLAIN, grm, differing(grm, -0.2), text=text), "bare")
    assert (held.verdict, held.paper, held.side) == ("worse", None, None)
    assert verdict_text(held) == "worse (not published)"


def test_a_row_may_be_held_against_several_and_by_word() -> None:
    text = (GRID + ROWS).replace("against: GRM, figures: [32.4]", "against: [GRM, plain], figures: [worse]")
    grm = differing(PLAIN, 0.1)
    found = made(PLAIN, grm, differing(PLAIN, 0.05, 0.01), text=text)
    assert only(found, "bare", "GRM").verdict == "agrees"
    assert only(found, "bare", "plain").verdict == "contradicts"
    assert "recall: differences" in terminal_text(found, 120)


@pytest.mark.parametrize(("figures", "verdict"), [((13.7, 13.3), "agrees"), ((13.3, 13.7), "contradicts")])
def test_less_may_be_better_on_either_side(figures: tuple[float, float], verdict: str) -> None:
    """Ours in bits, theirs in perplexity: GRM's loss is lower. The bench's losses are 1 less the accuracy."""
    column = "recall: {metric: bits, unit: perplexity, better: down}"
    text = (GRID + ROWS).replace("recall: {where: {task.name: [mqar, ar]}, margin: 0.02}", column)
    text = text.replace("31.8", str(figures[0])).replace("40.5", str(figures[1]))
    grm = differing(PLAIN, 0.1)
    held = only(made(PLAIN, grm, grm, text=text), "GRM")
    assert held.gap.mean == pytest.approx(-sum(g - p for g, p in zip(grm, PLAIN, strict=True)) / 5 / 0.6931471805599453)
    assert held.verdict == verdict


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_seeds_are_no_test(n: int) -> None:
    found = made(PLAIN[:n], [0.9] * n, [0.1] * n)
    assert [each.verdict for each in found.held] == ["none", "none"]
    assert f"No test was made: {n} seed" in terminal_text(found, 120)


def guessing(
    plan: Plan, rows: Sequence[Sequence[float]], level: float, known: dict[str, StoredRun] | None = None
) -> dict[str, StoredRun]:
    """The records with a predictor that is right so often on every slice."""
    known = known or store(plan, rows)
    found = {part: {"latest value": level} for part in (ALL, "pairs=4", "pairs=8")}
    return {name: replace(each, without_recall=found) for name, each in known.items()}


def test_a_row_that_is_not_above_chance_gets_a_mark_and_no_verdict_nor_does_one_held_against_it() -> None:
    plan = plan_of(GRID + ROWS)
    grm = differing([0.5] * 5, 0.3)
    chance = differing([0.1] * 5, 0.0)
    found = reproduction(plan, guessing(plan, [chance, grm, differing([0.3] * 5, 0.1, 0.01)], 0.12).get)
    held = only(found, "GRM")
    assert (held.verdict, held.reason, held.p) == ("none", "the other row: at chance", None)
    assert found.entries["plain", "recall"].mark == "at chance"
    assert only(found, "bare").verdict == "agrees"
    text = terminal_text(found, 120)
    assert "(at chance)" in text
    assert "more steps or another learning rate, then more seeds" in text
    # The family is the plan's: a comparison without a p counts all the same.
    assert only(found, "bare").p == pytest.approx(min(1.0, 2 * (only(found, "bare").gap.p or 0.0)))


def _is(cell: Cell, change: str, task: str) -> bool:
    return bool(cell.values["change"] == change and cell.values["task"]["name"] == task)


def test_a_mark_names_the_task_where_it_is_not_every_one() -> None:
    plan = plan_of(GRID + TASKS + ROWS)
    records = guessing(plan, [[0.9, 0.91, 0.92, 0.9, 0.93]] * 6, 0.1)
    late = next(cell for cell in plan.cells if _is(cell, "GRM", "ar"))
    for run in late.candidates[0].runs.values():
        records[run_id(run)] = replace(
            record(run, 0.1), without_recall={part: {"latest value": 0.2} for part in (ALL, *run.task.slices)}
        )
    found = reproduction(plan, records.get)
    assert found.entries["GRM", "recall"].mark == "at chance: ar"


def test_a_diverged_row_is_marked() -> None:
    plan = plan_of(GRID + ROWS)
    rows: list[Any] = [PLAIN, ["diverged"] * 5, PLAIN]
    found = reproduction(plan, store(plan, rows).get)
    assert found.entries["GRM", "recall"].mark == "diverged"
    assert {each.verdict for each in found.held} == {"none"}


def test_a_column_may_be_a_slice_of_the_task_or_one_that_the_test_adds() -> None:
    text = (GRID + ROWS).replace("where: {task.name: [mqar, ar]}, margin: 0.02", "where: {task.length: 128}")
    text = text.replace("recall:", "eight: {where: {task.pairs: 8}}, recall:").replace("figures: [", "figures: [null, ")
    plan = plan_of(text.replace("model: {dim: 8}}", "model: {dim: 8}, eval.task: {length: 128}}"))
    per_part = {ALL: 0.5, "pairs=4": 0.4, "pairs=8": 0.6, "length=128 pairs=4": 0.1, "length=128 pairs=8": 0.3}
    test = {part: score(value) for part, value in per_part.items()}
    records = {name: replace(each, test=test) for name, each in store(plan, [[0.5] * 5] * 3).items()}
    found = reproduction(plan, records.get)
    assert [column.name for column in found.columns] == ["eight", "recall"]
    assert found.entries["GRM", "eight"].spread.mean == pytest.approx(0.6)
    assert found.entries["GRM", "recall"].spread.mean == pytest.approx(0.2)


def test_what_this_form_of_the_grid_lacks_is_left_out_and_named() -> None:
    text = (GRID + ROWS).replace("columns: {recall:", "columns: {speech: {where: {task.name: niah}}, recall:")
    found = made(PLAIN, PLAIN, PLAIN, text=text.replace("figures: [", "figures: [null, "))
    assert [column.name for column in found.columns] == ["recall"]
    assert "Not in this form of the grid: speech." in terminal_text(found, 120)


def test_the_files_hold_what_the_terminal_shows() -> None:
    grm = differing(PLAIN, 0.1)
    found = made(PLAIN, grm, differing(grm, -0.05, 0.003))
    made_files = files(found)
    assert set(made_files) == {"paper.md", "paper.csv", "paper.tex", "paper.parquet"}
    text, page = terminal_text(found, 140), made_files["paper.md"].decode()
    for piece in ("40.5", "+8.7", "agrees", "Somebody, table 5"):
        assert all(piece in each for each in (text, page, made_files["paper.tex"].decode().replace("$+$", "+")))
    table = frame(found)
    assert pl.read_csv(made_files["paper.csv"])["verdict"].to_list() == [None, "agrees", "agrees"]
    assert table["paper_diff"].to_list() == [None, pytest.approx(8.7), pytest.approx(-8.1)]
    assert table["diff_mean"].to_list()[1] == pytest.approx(only(found, "GRM").gap.mean)
    assert table["mean"].to_list()[0] == pytest.approx(0.5)
    assert files(made(PLAIN, grm, differing(grm, -0.05, 0.003))) == made_files


def test_a_row_that_still_improves_or_whose_learning_rate_is_an_edge_gets_no_verdict() -> None:
    """Until it is mended nothing follows from it, however far apart the rows are."""
    plan = plan_of(GRID + ROWS + "select: {over: {train.lr: [0.001, 0.01, 0.1]}, seeds: 1}\n")
    rows = [PLAIN, differing(PLAIN, 0.1), differing(PLAIN, 0.3, 0.01)]
    chosen = {name: each for place in (1, 0, 2) for name, each in store(plan, rows, place).items()}
    best = {run_id(run) for cell in plan.cells for run in cell.candidates[1 + (cell.name == "GRM")].runs.values()}
    records = {
        name: replace(each, valid=each.test if name in best else {part: score(0.01) for part in each.test})
        for name, each in guessing(plan, rows, 0.1, chosen).items()
    }
    found = reproduction(plan, records.get)
    assert found.entries["GRM", "recall"].mark == EDGE
    assert only(found, "GRM").verdict == "none"
    late = [{"step": 300, "valid": {ALL: {"accuracy": 0.2}}}, {"step": 600, "valid": {ALL: {"accuracy": 0.5}}}]
    rising = reproduction(plan, records.get, lambda run: late)
    assert rising.entries["plain", "recall"].mark == IMPROVING
    assert "accuracy still rose when training ended" in terminal_text(rising, 120)

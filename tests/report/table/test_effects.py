"""Effects of a whole grid: against sums done by hand, and every shape of grid that is none."""

from dataclasses import replace
from itertools import product
from random import Random
from statistics import fmean

import polars as pl
import pytest

from mclab.config.strict import ConfigError
from mclab.plan.plan import CHANGE
from mclab.plan.seeds import Until
from mclab.report.plot.effects import effects_figure
from mclab.report.prose.effects import effect_sentences, same_runs
from mclab.report.stats import holm, paired
from mclab.report.table.baseline import with_baseline
from mclab.report.table.effects import effects
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_table
from mclab.report.write import markdown, write_tables
from tests.report.plans import GATE, SEGMENT, make_plan, mapped, store

CONNECTOR = "model.mixer.connector"
GATES, SEGMENTS = ("context", "input", "none"), (4, 8)


def noise(seed: int, cell: int) -> float:
    """What a seed shares among all cells, and a little of a cell's own: pairing takes the first away."""
    return 0.05 * Random(seed).random() + 0.004 * Random(100 * seed + cell).random()


def whole_grid(value, seeds: int = 5):
    """Three gates by two segments with the accuracy that `value` gives."""
    cells = [{GATE: gate, SEGMENT: segment} for gate, segment in product(GATES, SEGMENTS)]
    plan = make_plan(cells, seeds=range(seeds))
    results = [
        [value(cell[GATE], cell[SEGMENT]) + noise(seed, place) for seed in range(seeds)]
        for place, cell in enumerate(cells)
    ]
    return plan, store(plan, results), results


def parts(gate, segment):
    """Input costs 0.1, a segment of 8 gains 0.05, and 0.2 more without a gate."""
    return 0.5 - 0.1 * (gate == "input") + (0.05 + 0.2 * (gate == "none")) * (segment == 8)


def test_effects_are_differences_of_cells_by_hand():
    plan, records, results = whole_grid(parts)
    found = {effect.name: effect for effect in effects(summarise(plan, records.get))}
    assert list(found) == [
        *("gate: input", "gate: none", "segment: 8"),
        *("gate: input × segment: 8", "gate: none × segment: 8"),
    ]
    by_seed = list(zip(*results, strict=True))  # rows: context 4, context 8, input 4, input 8, none 4, none 8
    by_hand = {
        "gate: input": [((r[2] - r[0]) + (r[3] - r[1])) / 2 for r in by_seed],
        "segment: 8": [((r[1] - r[0]) + (r[3] - r[2]) + (r[5] - r[4])) / 3 for r in by_seed],
        "gate: none × segment: 8": [(r[5] - r[4]) - (r[1] - r[0]) for r in by_seed],
    }
    for name, gaps in by_hand.items():
        effect, expected = found[name], paired(dict(enumerate(gaps)), dict.fromkeys(range(5), 0.0))
        assert effect.difference.mean == pytest.approx(fmean(gaps))
        assert (effect.difference.lo, effect.difference.p) == pytest.approx((expected.lo, expected.p))
    assert [found[name].pairs for name in by_hand] == [2, 3, 1]
    assert [effect.p for effect in found.values()] == holm([effect.difference.p for effect in found.values()])


def test_what_is_there_is_told_and_what_is_not_is_not():
    plan, records, _ = whole_grid(parts)
    lines = " ".join(effect_sentences(effects(summarise(plan, records.get))))
    assert "gate: input is 0.099 below context (95 % interval" in lines
    assert "gate and segment go together: the difference of none to context is 0.2" in lines
    assert "higher with segment 8 than with 4" in lines
    plan, records, _ = whole_grid(lambda gate, segment: 0.5 - 0.1 * (gate == "input"))
    lines = " ".join(effect_sentences(effects(summarise(plan, records.get))))
    assert "No interaction can be told from none (gate × segment)." in lines
    assert "go together" not in lines


def test_a_level_that_changes_nothing_is_the_same_run_and_no_difference():
    """Connectors matter to a context gate alone: the cell of the input gate stands for both of them."""
    cells = [{GATE: "context", CONNECTOR: word} for word in ("own", "shared")] + [{GATE: "input"}]
    plan = make_plan(cells, seeds=range(4))
    rows = [[0.5, 0.6, 0.7, 0.8], [0.4, 0.6, 0.7, 0.7], [0.3, 0.3, 0.5, 0.5]]
    summary = summarise(plan, store(plan, rows).get)
    found = {effect.name: effect for effect in effects(summary)}
    assert list(found) == ["gate: input", "connector: shared"]
    assert found["gate: input"].by_seed[0] == pytest.approx(((0.3 - 0.5) + (0.3 - 0.4)) / 2)
    assert found["connector: shared"].pairs == 1
    assert same_runs(summary) == ["connector changes nothing in gate=input: all values give the same run."]
    assert same_runs(summary)[0] in terminal_table(plan, store(plan, rows).get).replace("\n  ", " ")


def test_axes_that_move_together_are_one():
    cells = [
        {GATE: gate, "model.dim": dim, "model.layers": layers}
        for gate in ("context", "input")
        for dim, layers in ((8, 1), (16, 2))
    ]
    plan = make_plan(cells, seeds=range(3))
    found = effects(
        summarise(plan, store(plan, [[0.1, 0.2, 0.4], [0.3, 0.3, 0.3], [0.2, 0.2, 0.1], [0.5, 0.6, 0.6]]).get)
    )
    assert [effect.name for effect in found][1] == "dim, layers: 16, 2"


def test_other_exams_are_compared_only_through_what_both_axes_share():
    """What length changes is no effect of a model; how it changes the gate's effect is."""
    cells = [{GATE: gate, "task.pairs": pairs} for gate in ("context", "input") for pairs in ([4], [8])]
    plan = make_plan(cells, seeds=range(3))
    found = effects(
        summarise(plan, store(plan, [[0.9, 0.8, 0.9], [0.7, 0.7, 0.6], [0.5, 0.6, 0.5], [0.1, 0.2, 0.2]]).get)
    )
    assert [effect.name for effect in found] == ["gate: input", "gate: input × pairs: 8"]


def test_cells_at_chance_get_no_verdict():
    plan, records, _ = whole_grid(parts)
    chance = {part: {"any value": 0.99} for part in ("all", "pairs=4", "pairs=8")}
    marked = mapped(plan, records, lambda record: {"without_recall": chance})
    found = effects(summarise(plan, marked))
    assert not any(effect.apart for effect in found)
    (line,) = effect_sentences(found)
    assert line.startswith("No verdict on 5 of 5 effects: they are computed from cells that must be mended first")


@pytest.mark.parametrize(
    ("cells", "more"),
    [
        ([{GATE: gate} for gate in GATES], {}),
        ([{GATE: "context"}, {GATE: "input"}, {SEGMENT: 4}], {"named": True, "names": ["a", "b", "c"]}),
        ([{GATE: "context", SEGMENT: 4}, {GATE: "input", SEGMENT: 8}, {GATE: "none", SEGMENT: 16}], {}),
    ],
)
def test_what_is_no_grid_of_two_axes_has_none(cells, more, tmp_path):
    plan = make_plan(cells, seeds=range(3), **more)
    records = store(plan, [[0.1, 0.2, 0.3]] * len(cells))
    assert effects(summarise(plan, records.get)) == []
    assert not [path for path in write_tables(plan, records.get, tmp_path) if path.name.startswith("effects")]
    with pytest.raises(ConfigError, match="two or more axes"):
        effects_figure(summarise(plan, records.get))


def test_files_page_and_plot_hold_them(tmp_path):
    plan, records, _ = whole_grid(parts)
    paths = write_tables(plan, records.get, tmp_path)
    rows = pl.read_csv(tmp_path / "effects.csv").to_dicts()
    assert tmp_path / "effects.md" in paths
    assert [(row["effect"], row["axis"], row["level"], row["axis_2"], row["pairs"]) for row in rows[2:4]] == [
        ("main", "segment", "8", None, 3),
        ("interaction", "gate", "input", "segment", 1),
    ]
    assert rows[1]["p"] >= rows[1]["p_one"]
    assert "Effects of the axes:" in markdown(summarise(plan, records.get))
    figure = effects_figure(summarise(plan, records.get))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[:3] == ["gate: input − context", "gate: none − context", "segment: 8 − 4"]


def test_seeds_that_some_cell_lacks_are_left_out():
    plan, records, _ = whole_grid(parts)
    missing = plan.cells[0].candidates[0].run_ids()[2]
    found = effects(summarise(plan, {key: value for key, value in records.items() if key != missing}.get))
    assert found[0].difference.n == 4


def test_a_baseline_by_its_values():
    plan, records, _ = whole_grid(parts)
    moved = with_baseline(plan, "gate=input segment=8")
    assert moved.cells[0].values == {GATE: "input", SEGMENT: 8}
    assert sorted(cell.name for cell in moved.cells) == sorted(cell.name for cell in plan.cells)
    assert with_baseline(plan, "model.mixer.gate=input, segment=8.0").cells == moved.cells
    found = {effect.name for effect in effects(summarise(moved, records.get)) if effect.main}
    assert found == {"gate: context", "gate: none", "segment: 4"}
    named = make_plan([{GATE: "context"}, {GATE: "input"}], names=["full", "- context"], named=True)
    assert with_baseline(named, "- context").cells[0].name == "- context"
    assert with_baseline(plan, None) is plan
    with pytest.raises(ConfigError, match="compares every row with the first one"):
        with_baseline(replace(plan, until=Until()), "gate=input segment=8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gate=inptu segment=4", "no cell has gate=inptu; did you mean input?"),
        ("gat=input", "gat is no axis of this grid; did you mean gate?"),
        ("gate=input", "fits 2 cells"),
        ("input", "write gate=... segment=..."),
        ("", "write gate=... segment=..."),
    ],
)
def test_a_baseline_that_is_none_names_what_is(text, said):
    plan, _, _ = whole_grid(parts)
    with pytest.raises(ConfigError) as error:
        with_baseline(plan, text)
    assert said in str(error.value)
    assert str(error.value).startswith("--baseline: ")


def test_crossed_changes_are_an_axis_too():
    cells = [{CHANGE: word, SEGMENT: segment} for segment in SEGMENTS for word in ("full", "input")]
    settings = [{SEGMENT: each[SEGMENT], GATE: "context" if each[CHANGE] == "full" else "input"} for each in cells]
    plan = make_plan(settings, seeds=range(3))
    made = [type(cell)(cell.name, values, cell.candidates) for cell, values in zip(plan.cells, cells, strict=True)]
    plan = type(plan)(**{**vars(plan), "cells": tuple(made), "axes": (CHANGE, SEGMENT)})
    rows = [[0.5, 0.6, 0.7], [0.4, 0.6, 0.7], [0.3, 0.3, 0.5], [0.1, 0.2, 0.1]]
    names = [effect.name for effect in effects(summarise(plan, store(plan, rows).get))]
    assert names == ["change: input", "segment: 8", "change: input × segment: 8"]

"""The figures by kind: what is drawn of which slices, and what is refused."""

import re
from dataclasses import replace
from statistics import fmean

import pytest

from mclab.config.ids import run_id
from mclab.config.outcome import ALL
from mclab.config.strict import ConfigError
from mclab.report.plot.curves import curves_figure, track
from mclab.report.plot.heat import heat_figure, heat_map
from mclab.report.plot.kinds import accuracy_figure, fitting, render, write_plots
from mclab.report.plot.slice_cells import families, groups, keys_of, spots, varied
from mclab.report.plot.slices import capacity_figure, slices_figure
from mclab.report.table.summary import summarise
from tests.report.plans import GATE, gates, make_plan, record
from tests.stored import score

LENGTHS = (64, 128, 256)


def accuracy(part):
    """An accuracy that tells the slice apart: 64 tokens and 4 pairs give 0.96."""
    length = int(found[1]) if (found := re.search(r"length=(\d+)", part)) else 64
    return 1 - 0.01 * int(re.search(r"pairs=(\d+)", part)[1]) - 0.001 * (length - 64)


def scored(cells, seeds=range(3), **base):
    """A summary in which every slice of every run, `eval.task`'s too, has the accuracy that its name says."""
    plan = make_plan(cells, seeds=seeds, base={"task.vocab": 64, **base})
    records = {}
    for cell in plan.cells:
        for config in cell.candidates[0].runs.values():
            own = config.task.slices
            parts = [*own, *(name for exam in config.test_variants for name in exam.slices)]
            length = f"length={config.task.length} "
            test = {part: accuracy(part if "length=" in part else length + part) for part in parts}
            test[ALL] = fmean(test[part] for part in own)
            found = {part: score(value, 1.0 - value) for part, value in test.items()}
            records[run_id(config)] = record(config, 0.5, test=found)
    return summarise(plan, records.get)


@pytest.fixture(scope="module")
def grid():
    return scored([{GATE: "context"}, {GATE: "none"}], **{"eval.task": {"length": list(LENGTHS[1:])}})


def titles(figure):
    return [axis.get_title() for axis in figure.axes if axis.get_visible()]


def test_names_of_slices_are_keys_and_values():
    assert keys_of("length=128 haystack=text depth=50") == {"length": 128, "haystack": "text", "depth": 50}
    assert keys_of("all") == {}


def test_own_slices_stand_at_the_tasks_length(grid):
    found = spots(grid)
    assert {(spot.at["length"], spot.at["pairs"]) for spot in found} == {(n, p) for n in LENGTHS for p in (4, 8)}
    assert varied(found) == ["pairs", "length"]
    assert list(families(found, ["pairs"])) == ["length=64", "length=128", "length=256"]


def test_slices_have_a_panel_a_family_and_a_line_a_row(grid):
    figure = slices_figure(grid)
    assert titles(figure) == ["length=64", "length=128", "length=256"]
    panel = figure.axes[1]
    assert [text.get_text() for text in panel.get_xticklabels()] == ["4", "8"]
    handles, labels = panel.get_legend_handles_labels()
    assert labels == ["context", "none"]
    assert list(handles[0].lines[0].get_ydata()) == pytest.approx([0.896, 0.856])
    seeds = [line for line in panel.lines if line.get_alpha() == 0.45]
    assert sum(len(line.get_xdata()) for line in seeds) == 2 * 2 * 3


def test_capacity_is_drawn_along_the_logarithm(grid):
    panel = capacity_figure(grid).axes[0]
    assert list(panel.get_xticks()) == [2.0, 3.0]
    assert panel.get_xlabel() == "pairs (logarithmic)"


def test_rows_that_differ_in_the_drawn_key_alone_are_one_line():
    cells = [{GATE: gate, "task.pairs": [n]} for gate in ("context", "none") for n in (1, 2, 4)]
    summary = scored(cells)
    found = groups(summary, spots(summary), ["pairs"])
    assert [(group.label, len(group.spots)) for group in found] == [("gate=context", 3), ("gate=none", 3)]
    assert list(capacity_figure(summary).axes[0].get_xticks()) == [0.0, 1.0, 2.0]
    mixes = scored([{"task.pairs": [4, 8]}, {"task.pairs": [8, 16]}])
    assert [group.label for group in groups(mixes, spots(mixes), ["pairs"])] == ["4,8", "8,16"]


def test_the_heat_map_has_length_across_and_a_number_down(grid):
    drawn = heat_map(grid)
    assert (drawn.down, drawn.across, drawn.ys, drawn.xs) == ("pairs", "length", [4, 8], list(LENGTHS))
    figure = heat_figure(grid)
    first = figure.axes[0]
    assert titles(figure)[:2] == ["context", "none"]
    assert [[round(float(v), 3) for v in line] for line in first.images[0].get_array()] == [
        [0.96, 0.896, 0.768], [0.92, 0.856, 0.728],
    ]  # fmt: skip
    assert first.images[0].get_clim() == (0.0, 1.0)
    assert [text.get_text() for text in first.texts] == ["0.96", "0.90", "0.77", "0.92", "0.86", "0.73"]
    assert "Trained at length 64." in figure.texts[1].get_text()


def test_rows_trained_at_several_lengths_are_one_heat_map():
    drawn = heat_map(scored([{GATE: gate, "task.length": n} for gate in ("context", "none") for n in LENGTHS]))
    assert (drawn.ys, drawn.xs) == ([4, 8], list(LENGTHS))
    assert [(panel.title, len(panel.cells)) for panel in drawn.panels] == [("gate=context", 6), ("gate=none", 6)]


def test_the_heat_map_comes_unasked_where_there_is_a_grid(grid):
    assert fitting(grid) == ["accuracy", "heat"]
    assert fitting(summarise(*gates([0.5, 0.6, 0.7]))) == ["accuracy"]


def test_a_slice_without_a_score_is_grey_not_zero(grid):
    row = grid.rows[1]
    kept = {part: spread for part, spread in row.slices.items() if part != "length=256 pairs=8"}
    figure = heat_figure(replace(grid, rows=(grid.rows[0], replace(row, slices=kept))))
    assert figure.axes[1].images[0].get_array().mask.sum() == 1
    assert "Grey: not scored there." in figure.texts[1].get_text()


def looks(*values):
    return [
        {"step": 50 * (n + 1), "valid": {ALL: {"accuracy": value, "loss": 1 - value}}} for n, value in enumerate(values)
    ]


def test_a_curve_is_the_mean_of_the_seeds_and_a_seed_that_stopped_stays():
    plan, lookup = gates([0.5, 0.6, 0.7, "diverged"])
    (row,) = summarise(plan, lookup).rows
    ids = [record.run_id for record in row.records.values()]
    curves = dict(zip(ids, [looks(0.1, 0.2), looks(0.3, 0.4, 0.5), looks(0.2, 0.9), looks(0.7)], strict=True))
    found = track(row, curves.get, "accuracy")
    assert found.steps == [50, 100, 150]
    assert found.mean == pytest.approx([0.2, 0.5, 1.6 / 3])
    assert (found.low, found.high) == ([0.1, 0.2, 0.2], [0.3, 0.9, 0.9])
    assert found.lost == [(50, 0.7)]


def test_curves_have_a_line_a_row():
    plan, lookup = gates([0.5, 0.6], [0.5, "diverged"])
    figure = curves_figure(summarise(plan, lookup), lambda run: looks(0.1, 0.5, 0.99))
    accuracy_panel, loss_panel = figure.axes
    assert accuracy_panel.get_legend_handles_labels()[1] == ["context", "input"]
    assert loss_panel.get_yscale() == "log"
    assert "before it diverged" in figure.texts[1].get_text()


def test_what_cannot_be_drawn_says_why(tmp_path):
    summary = summarise(*gates([0.5, 0.6, 0.7]))
    bare = scored([{"task.pairs": [4]}])
    for draw, given, why in (
        (lambda s: curves_figure(s, lambda run: []), summary, "curves: no run has a stored curve"),
        (slices_figure, bare, "every row has one slice only"),
        (capacity_figure, bare, "no number of pairs or needles varies"),
        (heat_figure, summary, "no grid of depth"),
        (slices_figure, summarise(gates([0.5])[0], {}.get), "no finished run"),
    ):
        with pytest.raises(ConfigError, match=why):
            draw(given)
    with pytest.raises(ValueError, match="kind: pie is not one of accuracy"):
        write_plots(*gates([0.5]), tmp_path, kinds=["pie"])


@pytest.mark.parametrize("kind", ["slices", "heat", "capacity", "curves"])
def test_the_same_bytes_twice(grid, kind):
    assert render(grid, "svg", kind, lambda run: looks(0.1, 0.2)) == render(
        grid, "svg", kind, lambda run: looks(0.1, 0.2)
    )


def test_marks_of_the_table_stand_under_the_plot():
    over = tuple({"train.lr": lr} for lr in (1e-3, 1e-2, 1e-1))
    plan = make_plan([{GATE: "context"}, {GATE: "input"}], seeds=range(3), over=over)
    records = {
        run_id(config): record(config, [0.5, 0.6, 1.0][place])
        for cell in plan.cells
        for place, candidate in enumerate(cell.candidates)
        for config in candidate.runs.values()
    }
    (_, foot) = accuracy_figure(summarise(plan, records.get)).texts[:2]
    assert "At the ceiling with the baseline: input." in foot.get_text()
    assert "lr at the edge of its range: context and input." in " ".join(foot.get_text().split())

"""The plot of accuracy against state: what makes a line, and where its points stand."""

from dataclasses import replace
from math import log2

import pytest

from mclab.config.ids import run_id
from mclab.config.strict import ConfigError
from mclab.report.plot.state import front, paths, state_figure, state_of, styles
from mclab.report.table.summary import summarise
from tests.report.plans import AGGREGATE, GATE, gates, make_plan, record

DIM = "model.dim"


def kept(config):
    """A state that grows with the width, and with a cache."""
    return {"state_fixed": config.model.dim**2, "state_cached": 64 * (config.model.mixer.aggregate == "grm")}


@pytest.fixture(scope="module")
def summary():
    cells = [{AGGREGATE: aggregate, DIM: dim} for aggregate in ("none", "grm") for dim in (32, 8, 16)]
    plan = make_plan(cells, seeds=range(2))
    runs = [run for cell in plan.cells for run in cell.candidates[0].runs.values()]
    records = {run_id(run): record(run, run.model.dim / 100, **kept(run)) for run in runs}
    return summarise(plan, records.get)


def test_a_width_makes_no_line_of_its_own_and_rows_stand_by_their_state(summary):
    found = paths(summary)
    assert [path.label for path in found] == ["aggregate=none", "aggregate=grm"]
    assert [[state_of(row) for row in path.rows] for path in found] == [[64, 256, 1024], [128, 320, 1088]]


def test_state_is_logarithmic_with_the_means_at_it(summary):
    panel = state_figure(summary).axes[0]
    handles, labels = panel.get_legend_handles_labels()
    assert labels == ["aggregate=none", "aggregate=grm"]
    line = handles[1].lines[0]
    assert list(line.get_xdata()) == pytest.approx([log2(128), log2(320), log2(1088)])
    assert list(line.get_ydata()) == pytest.approx([0.08, 0.16, 0.32])
    lowest = state_figure(summary).axes[-1]
    assert [text.get_text() for text in lowest.get_xticklabels()] == ["64", "128", "256", "512", "1k", "2k"]


def test_without_a_numeric_key_every_row_is_a_line():
    plan = make_plan([{GATE: "context"}, {GATE: "none"}], seeds=range(2))
    runs = [run for cell in plan.cells for run in cell.candidates[0].runs.values()]
    records = {run_id(run): record(run, 0.5, state_fixed=100 + 10 * n, state_cached=0) for n, run in enumerate(runs)}
    assert [path.label for path in paths(summarise(plan, records.get))] == ["gate=context", "gate=none"]


def test_equal_states_and_unknown_ones_are_refused():
    with pytest.raises(ConfigError, match="state: the plot needs two rows"):
        state_figure(summarise(*gates([0.5, 0.6], [0.7, 0.8])))
    plan, lookup = gates([0.5], [0.6])
    unknown = summarise(plan, lambda key: replace(lookup(key), state_fixed=None))
    with pytest.raises(ConfigError, match="state: the plot needs two rows"):
        state_figure(unknown)


def mixers():
    """Two families of two members and one alone; what keeps more recalls more, but for the second."""
    names = ["linear", "linear GRM", "delta", "delta GRM", "attention"]
    memory = [{"model.mixer.memory": m, AGGREGATE: a} for m in ("linear", "delta") for a in ("none", "grm")]
    plan = make_plan([*memory, {"model.mixer": {"name": "attention"}}], range(3), names=names, named=True)
    runs = [list(cell.candidates[0].runs.values()) for cell in plan.cells]
    scores = ((0.3, 100), (0.2, 200), (0.4, 100), (0.6, 400), (0.9, 800))
    records = {
        run_id(run): record(run, accuracy, state_fixed=state, state_cached=0)
        for own, (accuracy, state) in zip(runs, scores, strict=True)
        for run in own
    }
    return summarise(plan, records.get)


def test_a_family_has_a_colour_and_its_members_markers():
    looks = styles(paths(mixers()))
    colours = [colour for colour, _, _ in looks]
    assert colours[0] == colours[1] != colours[2] == colours[3] != colours[4]
    assert len(set(looks)) == len({(dash, marker) for _, dash, marker in looks[:2]}) + 3
    assert looks[0][2] != looks[1][2]


def test_a_single_family_has_a_colour_a_line(summary):
    assert [colour for colour, _, _ in styles(paths(summary))] == [0, 1]


def test_the_front_holds_what_none_beats_with_as_little_state():
    found = mixers()
    assert [(size, mean, path.label) for size, mean, path in front(paths(found), "all")] == [
        (100, pytest.approx(0.4), "delta"),
        (400, pytest.approx(0.6), "delta GRM"),
        (800, pytest.approx(0.9), "attention"),
    ]
    panel = state_figure(found).axes[0]
    assert [text.get_text() for text in panel.texts] == ["delta", "delta GRM", "attention"]

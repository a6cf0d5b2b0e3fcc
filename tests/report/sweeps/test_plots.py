"""The figures of a sweep: what is drawn of the trials, and nothing where there is nothing."""

import pytest
from matplotlib.colors import to_hex

from mclab.plan.space_trials import Trials
from mclab.report.sweeps.plots import figures_of, write_plots
from mclab.report.sweeps.study import Study
from tests.report.sweeps.trials import FRONT, GATE, LR, SEVERAL, STATE, K, study, trial, weights


def drawn(found: Trials, name: str):
    return figures_of(Study(found))[name]()


def panels(figure):
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"]


def rows(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_a_bar_for_each_axis_the_most_important_on_top():
    (axes,) = panels(drawn(study(*SEVERAL, importances=weights(lr=0.7, gate=0.3)), "importances"))
    assert rows(axes) == ["lr", "gate", "k"]
    assert [bar.get_width() for bar in axes.patches] == [0.7, 0.3, 0.0]
    assert axes.yaxis_inverted()


def test_every_bar_of_two_objectives_ends_within_its_panel():
    shares = {**weights(lr=0.9, gate=0.1), STATE.metric: {GATE.path: 0.2, LR.path: 0.1, K.path: 0.0}}
    accuracy, state = panels(drawn(study(*FRONT, two=True, importances=shares), "importances"))
    assert [max(bar.get_width() for bar in axes.patches) for axes in (accuracy, state)] == [0.9, 0.2]
    assert accuracy.get_xlim() == state.get_xlim() == (0, pytest.approx(1.12 * 0.9))


def test_every_distinct_trial_is_a_dot_at_its_level():
    (axes,) = panels(drawn(study(*SEVERAL), "marginals"))
    assert rows(axes)[:6] == ["gate", "context", "input", "null", "k", "1"]
    seen = [line for line in axes.lines if line.get_alpha() and len(line.get_xdata())]
    dots = {round(line.get_ydata()[0] - 0.2): list(line.get_xdata()) for line in seen}
    assert {rows(axes)[row]: xs for row, xs in dots.items() if row < 4} == {
        "context": [0.9, 0.8],
        "input": [0.7],
        "null": [0.5],
    }
    assert to_hex(axes.lines[0].get_color()) == "#666666"
    assert axes.lines[0].get_xdata()[0] == pytest.approx((0.9 + 0.7 + 0.8 + 0.5) / 4)


def test_the_contour_is_of_the_two_strongest_axes():
    (axes,) = panels(drawn(study(*SEVERAL, importances=weights(lr=0.7, k=0.2, gate=0.1)), "contour"))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("lr", "gate")  # of k one value alone was seen
    assert sorted(text.get_text() for text in axes.texts) == ["0.500 (1)", "0.700 (1)", "0.800 (1)", "0.900 (1)"]


def test_the_front_is_joined_and_numbered():
    (axes,) = panels(drawn(study(*FRONT, two=True), "front"))
    everyone, front = axes.lines
    assert list(everyone.get_xdata()) == [500, 700, 4000, 4000]
    assert (list(front.get_xdata()), list(front.get_ydata())) == ([500, 4000, 4000], [0.6, 0.9, 0.9])
    assert sorted(text.get_text() for text in axes.texts) == ["0, 3", "1"]
    assert (axes.get_xlabel(), axes.get_xscale()) == ("state (less is better)", "log")


def test_files_are_the_same_twice(tmp_path):
    found = study(*SEVERAL, importances=weights(lr=0.7, gate=0.3))
    paths = write_plots(found, tmp_path / "a")
    assert [path.name for path in paths][::2] == ["importances.png", "marginals.png", "contour.png"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert [p.read_bytes() for p in paths] == [p.read_bytes() for p in write_plots(found, tmp_path / "b")]
    with pytest.raises(ValueError, match="format: gif is not one of png, svg, pdf"):
        write_plots(found, tmp_path, ["gif"])


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (study(), []),
        (study(trial(0, "diverged", {"lr": 0.1}), two=True), []),
        (study(trial(0, 0.5, {"lr": 0.01, "gate": "input"})), ["marginals"]),
        (study(trial(0, 0.5, {}, 100.0), two=True), ["marginals", "front"]),
        (study(*(trial(n, 0.0, {"gate": g}) for n, g in enumerate(GATE.values))), ["marginals"]),
        (
            study(*(trial(n, 0.5, {"lr": 0.02, "gate": g, "k": n + 1}) for n, g in enumerate(GATE.values))),
            ["marginals", "contour"],
        ),
    ],
)
def test_what_there_is_to_draw_is_drawn(found: Trials, names: list[str], tmp_path):
    assert [path.stem for path in write_plots(found, tmp_path, ["svg"])] == names

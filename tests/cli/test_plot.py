"""mclab plot: each kind in a file of its own."""

from pathlib import Path

from tests.commands import fine, mclab, one_line


def test_each_kind_of_plot_has_a_file_of_its_own(finished: Path) -> None:
    for kind in ("points", "curves", "slices", "capacity"):
        done = fine("plot", finished, "--kind", kind, "--format", "svg")
        assert done.out == f"{finished}/plots/{kind}.svg\n"
    one_line(mclab("plot", finished, "--kind", "heat"), "heat: the slices are no grid of depth", "eval.task")
    one_line(mclab("plot", finished, "--kind", "curve"), "did you mean curves?")


def test_kinds_that_cannot_be_drawn_are_named_and_the_others_drawn(here: Path, finished: Path) -> None:
    some = fine("plot", finished, "--kind", "heat", "--kind", "points", "--format", "svg", "--out", "new")
    assert some.out == "new/plots/points.svg\n"
    assert some.err.startswith("not drawn: heat: the slices are no grid of depth")
    assert some.err.count("\n") == 1
    none = mclab("plot", finished, "--kind", "heat", "--kind", "effects")
    assert (none.code, none.out) == (2, "")
    assert "heat: the slices are no grid" in none.err
    assert "effects: nothing can be drawn" in none.err


def test_a_plot_of_nothing_says_so(here: Path, finished: Path) -> None:
    (here / "empty").mkdir()
    (here / "empty/plan.json").write_bytes((finished / "plan.json").read_bytes())
    one_line(mclab("plot", "empty"), "tiny: no run has a result yet, so there is nothing to draw")
    assert list((here / "empty").iterdir()) == [here / "empty/plan.json"]

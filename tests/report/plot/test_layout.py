"""Figures for print: fonts, sizes of type, widths, names of one's own, what is drawn of two seeds."""

import re
import shutil
import subprocess
import zlib

import pytest

from mclab.config.strict import ConfigError
from mclab.report.plot.kinds import accuracy_figure, figure_of, render, write_plots
from mclab.report.plot.layout import Layout, inches, printed, renamed, using_layout
from mclab.report.plot.slices import slices_figure
from mclab.report.table.summary import summarise
from tests.commands import ROOT, fine, mclab, one_line
from tests.report.plans import gates, make_plan, store


def twelve():
    """A dozen rows of two slices, three seeds each."""
    plan = make_plan(
        [{"train.clip": 1.0 + n} for n in range(12)], seeds=range(3), names=[f"row {n}" for n in range(12)], named=True
    )
    return plan, store(plan, [[0.3 + n / 20, 0.32 + n / 20, 0.35 + n / 20] for n in range(12)]).get


def look(step, accuracy):
    """A look of a curve, as it is stored."""
    return {"step": step, "valid": {"all": {"accuracy": accuracy, "loss": 2 - accuracy}}}


def sizes(pdf):
    """Every size of type that a text is set in, in points."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    found = []
    for stream in streams:
        try:
            text = zlib.decompress(stream)
        except zlib.error:
            continue
        found += [float(size) for size in re.findall(rb"/F\S* ([\d.]+) Tf", text)]
    return found


@pytest.mark.parametrize("kind", ["accuracy", "slices"])
def test_a_column_s_pdf_has_true_fonts_and_nothing_under_six_points(kind, tmp_path):
    with using_layout(printed(inches("single"))):
        pdf = render(summarise(*twelve()), "pdf", kind)
    assert b"/Type3" not in pdf.replace(b" ", b"")
    assert b"/CIDFontType2" in pdf.replace(b" ", b"")
    found = sizes(pdf)
    assert len(found) > 10
    assert min(found) >= 6
    assert 8.0 in found
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf)
    assert float(box[1]) == pytest.approx(3.3 * 72)
    if shutil.which("pdffonts"):
        (tmp_path / "a.pdf").write_bytes(pdf)
        told = subprocess.run(["pdffonts", tmp_path / "a.pdf"], capture_output=True, text=True, check=True).stdout
        assert "Type 3" not in told
        assert all(line.split()[-5] == "yes" for line in told.splitlines()[2:]), told  # embedded


def test_widths():
    assert inches("double") == 7.0
    assert inches("8.4") == inches("8.4cm") == pytest.approx(3.307, abs=1e-3)
    for wrong in ("narrow", "1", "nan", "1e9"):
        with pytest.raises(
            ConfigError, match=re.escape(f"--width: '{wrong}' is not single, double or 5 to 60 centimetres")
        ):
            inches(wrong)


def test_no_title_leaves_no_room_for_one():
    summary = summarise(*gates([0.5, 0.6, 0.7], [0.6, 0.7, 0.8]))
    with using_layout(printed(7.0)):
        whole = accuracy_figure(summary)
    with using_layout(Layout(width=7.0, heading="")):
        bare = accuracy_figure(summary)
    assert whole.get_size_inches()[0] == bare.get_size_inches()[0] == 7.0
    assert bare.get_size_inches()[1] < whole.get_size_inches()[1]
    assert summary.plan.question not in [text.get_text() for text in bare.texts]


def test_labels_rename_rows_and_slices(tmp_path):
    given = gates([0.5, 0.6, 0.7], [0.6, 0.7, 0.8])
    (path,) = write_plots(
        *given, tmp_path, ["svg"], ["accuracy"], labels=["context=A gate of its own", "pairs=4=four pairs"]
    )
    text = path.read_text()
    assert "<!-- A gate of its own -->" in text
    assert "<!-- four pairs -->" in text
    assert "<!-- context -->" not in text
    with pytest.raises(
        ConfigError,
        match="--labels: 'contxt=A' must be OLD=NEW, where OLD is a row, key or slice in the figure; did you mean",
    ):
        write_plots(*given, tmp_path, ["svg"], ["accuracy"], labels=["contxt=A"])


def test_the_longest_name_is_the_one_that_is_renamed():
    assert renamed(["gate=input=Token"], {"gate", "gate=input"}) == {"gate=input": "Token"}
    assert renamed(["gate=Gate"], {"gate", "gate=input"}) == {"gate": "Gate"}


def test_two_seeds_are_two_points_and_no_interval():
    summary = summarise(*gates([0.5, 0.6], [0.6, 0.7]))
    figure = accuracy_figure(summary)
    for panel in figure.axes:
        low, high = panel.get_xlim()
        assert high - low < 0.5  # a t interval of two would take the whole axis
        assert all(len(set(part[:, 0])) == 1 for c in panel.collections for part in c.get_segments())
    assert any("without an interval, n = 2; each small dot is a seed" in text.get_text() for text in figure.texts)


def test_a_dozen_rows_by_slice_are_one_below_the_other():
    figure = slices_figure(summarise(*twelve()))
    (panel,) = [axes for axes in figure.axes if axes.get_visible()]
    assert [label.get_text() for label in panel.get_yticklabels()] == [f"row {n}" for n in range(12)]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["pairs=4", "pairs=8"]
    handles, labels = panel.get_legend_handles_labels()
    means = dict(zip(labels, (list(handle[0].get_xdata()) for handle in handles), strict=True))
    assert means["pairs=4"] == pytest.approx([0.3233 + n / 20 for n in range(12)], abs=1e-3)


def test_lines_have_markers_and_dashes_of_their_own():
    summary = summarise(*gates([0.5, 0.6, 0.7], [0.6, 0.7, 0.8], [0.1, 0.2, 0.3]))
    looks = [look(step, step / 400) for step in (100, 200, 300)]
    panel = figure_of(summary, "curves", lambda run: looks).axes[0]
    styles = {(line.get_marker(), line.get_linestyle()) for line in panel.lines if len(line.get_xdata()) == 3}
    assert len(styles) == 3


def test_the_command_takes_them(tmp_path):
    folder = ROOT / "tests/fixture/paper"
    words = ("plot", folder, "--format", "pdf", "--out", tmp_path / "p", "--kind", "accuracy")
    done = fine(*words, "--width", "single", "--title", "none")
    assert b"/Type3" not in (tmp_path / "p/plots/accuracy.pdf").read_bytes()
    assert done.out.strip().endswith("accuracy.pdf")
    one_line(mclab(*words, "--width", "wide"), "--width: 'wide' is not single, double or 5 to 60 centimetres")
    one_line(mclab("table", folder, "--second", "underline"), "--second: this option needs --format tex")

"""Hidden characters are shown, never obeyed: on the terminal, in pages, on plots. Files of data keep them."""

from pathlib import Path

import polars as pl
import pytest

from mclab.config.strict import ConfigError
from mclab.printable import one_line, printable
from mclab.report.plot.kinds import figure_of, render
from mclab.report.table.summary import summarise
from tests.commands import TINY, fine, grid_file, mclab, no_plots, snapshot
from tests.commands import one_line as is_one_line

#: Escape, bell, carriage return, a C1 control, overrides and isolates, marks, no width, separators, a tag.
HIDDEN = "\x1b\x07\r\x7f\x9b\u202e\u2066\u2069\u200e\u061c\u200b\u200d\ufeff\u2028\u2029\U000e0041"
SHOWN = (
    r"\x1b\x07\r\x7f\x9b\u202e\u2066\u2069\u200e\u061c\u200b\u200d\ufeff\u2028\u2029\U000e0041"
)  # fmt: skip


def test_what_is_hidden_is_written_out_and_the_rest_stays() -> None:
    assert printable(HIDDEN) == SHOWN
    assert printable(SHOWN) == SHOWN
    assert printable("γ 中 é ± – “x”\n") == "γ 中 é ± – “x”\n"
    assert one_line("a\nb\udcff") == r"a\nb\xff"


def test_an_error_cannot_pretend_to_be_two() -> None:
    assert str(ConfigError("x: \x1b[2J\nmclab: all done", "y")) == "x: \\x1b[2J\\nmclab: all done\ny"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


ROW = r"a\e[31m\u202Eb\nc"
#: A grid whose question, rows and values hold what a terminal would obey.
EVIL = (
    TINY.replace("Does the gate matter?", r'"Is \e]0;owned\a it \u202Etxt.exe?"')
    .replace("grid: {model.mixer.gate: [context, none]}", f'changes: {{"{ROW}": {{}}, b: {{model.mixer.gate: none}}}}')
    .replace("seeds: 0..1", "seeds: [0]")
)


def safe(text: str) -> bool:
    return text == printable(text)


def test_question_and_rows_are_shown_everywhere_and_kept_in_data(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)
    grid = grid_file(here, EVIL)
    dry = fine("ablate", "--grid", grid, "--dry-run")
    done = fine("ablate", "--grid", grid, "--workers", 1, "--out", "o")
    listed, table = fine("list", "o"), fine("table", "o")
    for each in (dry, done, listed, table):
        assert safe(each.out + each.err)
    assert r"Is \x1b]0;owned\x07 it \u202etxt.exe?" in done.out
    assert r"a\x1b[31m\u202eb" in done.out
    for name in ("table.md", "table.tex"):
        text = (here / "o" / "tables" / name).read_text()
        assert safe(text)
        assert "u202etxt.exe" in text
    name = "a\x1b[31m\u202eb\nc"
    assert pl.read_csv(here / "o" / "tables" / "table.csv")["name"].to_list() == [name, "b"]
    assert pl.read_parquet(here / "o" / "tables" / "table.parquet")["name"].to_list() == [name, "b"]
    assert name in fine("table", "o", "--format", "csv").out
    assert fine("table", "o", "--json").json[0]["name"] == name


def test_keys_values_and_paths_in_faults(here: Path) -> None:
    for text in (r'base: {"a\eb\nc: 1": 1}', r'base: {task: {name: "x\ey\nz"}}', r'"k\e\n": 1'):
        done = mclab("ablate", "--grid", grid_file(here, text), "--dry-run")
        is_one_line(done, r"\x1b")
        assert safe(done.err)
    done = mclab("ablate", "--grid", "no\x1b[2J\nsuch.yaml")
    is_one_line(done, r"no\x1b[2J\nsuch.yaml: cannot be read")
    assert safe(mclab("ablate", "--x\x1b").err)


def test_plots_show_them_too(here: Path) -> None:
    from mclab.plan.grid import load_plan

    row = TINY.replace("grid: {model.mixer.gate: [context, none]}", f'changes: {{"{ROW}": {{}}, b: {{model.dim: 4}}}}')
    summary = summarise(load_plan(grid_file(here, row)), lambda run: None)
    labels = [label.get_text() for label in figure_of(summary, "points").axes[0].get_yticklabels()]
    assert any("\x1b" in label for label in labels)  # so there is something to show
    assert b"\x1b" not in render(summary, "svg", "points")


# ---- names of files ----


def test_names_of_files_never_lead_elsewhere(here: Path) -> None:
    work = here / "work"
    work.mkdir()
    for name, text in (("...yaml", TINY), ("....yaml", TINY), ("...yaml", "space: {train.lr: [0.1, 0.2]}")):
        verb = ("ablate", "--grid") if "grid" in text else ("sweep", "--trials", 1, "--space")
        is_one_line(mclab(*verb, grid_file(work, text, name)), "name has only dots", "rename the file")
    assert (
        fine("ablate", "--grid", grid_file(work, TINY, ".tiny.yaml"), "--dry-run", "--json").json["out"] == "runs/tiny"
    )
    assert {path.name for path in here.iterdir()} == {"work"}


def test_a_grid_whose_name_is_no_text_is_a_line_before_anything_runs(here: Path) -> None:
    path = here / "tiny\udcff.yaml"
    path.write_text(TINY)
    before = snapshot(here)
    is_one_line(mclab("ablate", "--grid", path, "--workers", 1), r"tiny\xff.yaml", "not valid UTF-8", "rename the file")
    assert snapshot(here) == before


@pytest.mark.parametrize(
    "words",
    [
        ("ablate", "--grid", "tiny.yaml", "--out", "x" * 300),
        ("ablate", "--grid", "tiny.yaml", "--dry-run", "--out", f"{'é' * 128}/o"),
        ("ablate", "--grid", f"{'g' * 250}.yaml", "--smoke"),
        ("train", "--dry-run", "--out", "/".join(["x" * 200] * 21)),
        ("sweep", "--space", f"{'g' * 300}.yaml", "--trials", 1),
        ("list", "x" * 300),
        ("table", "runs", "--out", "x" * 300),
        ("show", "ab", "x" * 300),
        ("sample", "--run", "ab", "--plot", f"{'p' * 240}.png"),
    ],
)
def test_what_no_file_system_has_room_for_is_a_line_before_anything_runs(here: Path, words: tuple[object, ...]) -> None:
    grid_file(here)
    if "--smoke" in words:
        grid_file(here, name=f"{'g' * 250}.yaml")
    before = snapshot(here)
    is_one_line(mclab(*words))
    assert snapshot(here) == before

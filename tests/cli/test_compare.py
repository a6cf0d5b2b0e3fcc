"""mclab compare: two rows by name or by key, of one folder or two."""

import re
from pathlib import Path

import pytest

from tests.commands import fine, mclab, no_plots, one_line


def test_two_rows_by_name_or_by_key(finished: Path) -> None:
    text = fine("compare", finished, "context", "none").out
    assert text.startswith("first:  context\nsecond: none\n\nslice ")
    assert re.search(r"^pairs=2 +0\.\d{3} ± 0\.\d{3} \(2\) .* \(2 pairs\)  –$", text, re.M)
    assert "\np: no test was made; a test needs three seeds in common, and " in text
    assert text.endswith(
        "\nthe two sides differ in model.mixer.aggregate grm → residual; model.mixer.gate context → none\n"
    )
    assert fine("compare", finished, "gate=context", "model.mixer.gate=none").out == text
    assert fine("compare", f"{finished}:context", f"{finished}:none").out == text
    (facts,) = fine("compare", finished, "context", "none", "--json").json
    assert [line["slice"] for line in facts["slices"]] == ["all", "pairs=1", "pairs=2"]
    assert facts["also"] == []


def test_rows_of_two_folders_and_what_else_is_not_equal(
    here: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_plots(monkeypatch)
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "--out", "other", "train.lr=0.02", "--seeds", "0..2")
    text = fine("compare", f"{finished}:none", "other:none").out
    assert f"first:  none  ({finished})\nsecond: none  (other)\n" in text
    assert "! they also differ in train.lr 0.01 → 0.02\n" in text
    assert "! they also differ in seeds 0, 1 and 0..2; paired over 0, 1\n" in text
    assert fine("compare", f"{finished}:none", "other").out == text
    both = fine("compare", finished, "other").out
    assert both.endswith(text)
    assert both.startswith("first:  context  (")


def test_what_cannot_be_compared_is_one_line(finished: Path) -> None:
    one_line(mclab("compare", finished, "context", "nome"), "there is no row 'nome'; did you mean none?")
    one_line(
        mclab("compare", finished, "context", "gats=none"), "gats is no key that the grid varies; did you mean gate?"
    )
    one_line(mclab("compare", finished, "gate=none"), "gate=none is no folder", f"{finished} gate=none ROW")
    one_line(mclab("compare", finished), "compare: give two rows of one folder (FOLDER ROW ROW)")
    one_line(mclab("compare", "nowhere", "a", "b"), "nowhere: there is no such run folder")

"""docs/library.md: its code runs as it stands there, and its model learns to recall."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands import ROOT, no_plots

PAGE = ROOT / "docs/library.md"


def blocks() -> list[str]:
    """The page's code, in order."""
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_learns_and_decodes_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a quarter of its sequences a step; guessing among the values that are present scores 0.25."""
    monkeypatch.chdir(tmp_path)
    learning, decoding, _ = blocks()
    names: dict[str, Any] = {}
    exec(learning.replace("batch(64)", "batch(16)"), names)
    assert names["accuracy"] > 0.6
    exec(decoding, names)
    whole = names["model"](names["tokens"])[:, -1:]
    torch.testing.assert_close(names["logits"], whole, atol=1e-4, rtol=1e-4)
    assert (names["caches"][0].tokens, names["caches"][0].segments) == (12, 1)


def test_the_page_runs_a_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, with a few steps."""
    monkeypatch.chdir(tmp_path)
    no_plots(monkeypatch)
    names: dict[str, Any] = {}
    few = {"steps: 300": "steps: 4, batch: 4", 'seeds: 0..2\n"""': 'seeds: 0..1\n""", workers=1'}
    code = blocks()[2]
    for before, after in few.items():
        assert before in code
        code = code.replace(before, after)
    exec(code, names)
    assert names["runs"]["gate"].to_list() == ["context", "context", "none", "none"]
    assert "context" in capsys.readouterr().out
    assert len(list(tmp_path.glob("runs/grid-*/records/*.json"))) == 4


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE.read_text())
    assert targets
    assert [target for target in targets if not (PAGE.parent / target).exists()] == []

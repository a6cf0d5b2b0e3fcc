"""docs/library.md: its code runs as it stands there, and its model learns to recall."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands import ROOT

PAGE = ROOT / "docs/library.md"


def test_the_page_learns_and_decodes_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a quarter of its sequences a step; guessing among the values that are present scores 0.25."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(blocks[0].replace("batch(64)", "batch(16)"), names)
    assert names["accuracy"] > 0.6
    exec(blocks[1], names)
    whole = names["model"](names["tokens"])[:, -1:]
    torch.testing.assert_close(names["logits"], whole, atol=1e-4, rtol=1e-4)
    assert (names["caches"][0].tokens, names["caches"][0].segments) == (12, 1)


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE.read_text())
    assert targets
    assert [target for target in targets if not (PAGE.parent / target).exists()] == []

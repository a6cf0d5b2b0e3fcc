"""A folder to stand in, and quicker commands for tests that look at no plot."""

from pathlib import Path

import pytest

from tests.commands import grid_file, no_plots


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test stands in an empty folder with one grid in it, tiny.yaml."""
    monkeypatch.chdir(tmp_path)
    grid_file(tmp_path)
    return tmp_path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn."""
    no_plots(monkeypatch)

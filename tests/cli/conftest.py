"""A folder to stand in, and a run folder to read."""

from pathlib import Path

import pytest

from tests.commands import fine, grid_file


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test stands in an empty folder with one grid in it, tiny.yaml."""
    monkeypatch.chdir(tmp_path)
    grid_file(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the tiny grid, all run. Its tables and plots may be written again, no more."""
    folder = tmp_path_factory.mktemp("finished")
    fine("ablate", "--grid", grid_file(folder), "--workers", 1, "--out", folder / "tiny")
    return folder / "tiny"

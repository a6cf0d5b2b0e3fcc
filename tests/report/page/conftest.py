"""A folder to stand in, and the page of a large grid."""

from pathlib import Path

import pytest

from mclab.report.page.grid import grid_page
from mclab.report.page.html import Source
from tests.cli.conftest import here  # an autouse fixture
from tests.report.plans import GATE, make_plan, store

__all__ = ["here", "large"]


@pytest.fixture(scope="session")
def large() -> bytes:
    """The page of 300 rows."""
    cells = [{"train.clip": 1.0 + n, GATE: gate} for n in range(150) for gate in ("context", "input")]
    names = [f"row {n}" for n in range(300)]
    plan = make_plan(cells, range(2), names=names, named=True)
    records = store(plan, [[0.3 + n / 1000, 0.4] for n in range(300)])
    return grid_page(plan, records.get, lambda run: [], Source(Path("runs/g")))

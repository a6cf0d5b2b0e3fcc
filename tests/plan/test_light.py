"""Planning takes large grids and drags nothing heavy in."""

import subprocess
import sys

from mclab.plan.size import size
from tests.commands import BIG
from tests.plan.conftest import Make


def test_five_hundred_cells_are_planned(plan: Make):
    """How fast: benchmarks/command.py."""
    found = plan(BIG)
    assert (size(found).cells, size(found).candidates) == (500, 1000)


def test_no_heavy_import():
    code = (
        "import sys, mclab.plan.grid, mclab.plan.describe, mclab.plan.difference, mclab.plan.select, mclab.plan.size\n"
        "import mclab.config.keys; mclab.plan.grid.plan_from({}, 'x')\n"
        "print([n for n in ('torch', 'numpy', 'optuna', 'polars', 'dask', 'scipy', 'matplotlib') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

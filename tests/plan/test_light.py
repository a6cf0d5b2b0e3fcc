"""Planning takes large grids and drags nothing heavy in."""

import subprocess
import sys

from mclab.plan.plan import workload
from tests.commands import BIG
from tests.plan.conftest import Make


def test_five_hundred_cells_are_planned(plan: Make):
    """How fast: benchmarks/command.py."""
    found = plan(BIG)
    assert (workload(found).cells, workload(found).candidates) == (500, 1000)


def test_no_heavy_import():
    code = (
        "import sys, mclab.plan.grid, mclab.plan.plan_json, mclab.plan.plan_diff, mclab.plan.select, mclab.plan.plan\n"
        "import mclab.config.keys; mclab.plan.grid.plan_from({}, 'x')\n"
        "print([n for n in ('torch', 'numpy', 'optuna', 'polars', 'dask', 'scipy', 'matplotlib') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

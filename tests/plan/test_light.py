"""Planning is quick and drags nothing heavy in."""

import subprocess
import sys
import time

from mclab.plan.size import size
from tests.plan.conftest import Make

BIG = """
    grid:
      model.mixer.segment: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]
      model.dim: [8, 16, 24, 32, 40]
      train.weight_decay: [0, 0.1, 0.2, 0.3]
    select: {over: {train.lr: [3.0e-3, 1.0e-2]}, seeds: 2}
    seeds: 0..4
    """


def test_five_hundred_cells_are_planned_in_half_a_second(plan: Make):
    began = time.process_time()
    found = plan(BIG)
    spent = time.process_time() - began
    assert (size(found).cells, size(found).candidates) == (500, 1000)
    assert spent < 0.5


def test_no_heavy_import():
    code = (
        "import sys, mclab.plan.grid, mclab.plan.describe, mclab.plan.difference, mclab.plan.select, mclab.plan.size\n"
        "import mclab.config.keys; mclab.plan.grid.plan_from({}, 'x')\n"
        "print([n for n in ('torch', 'numpy', 'optuna', 'polars', 'dask', 'scipy', 'matplotlib') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

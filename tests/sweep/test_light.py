"""What looks at a space imports nothing heavy."""

import subprocess
import sys
from pathlib import Path

from tests.sweep.bench import space_file

CODE = """
import contextlib, io, sys
from mclab.cli import main
for words in (["sweep", "--help"], ["sweep", "--space", "s.yaml", "--trials", "3", "--dry-run"]):
    sys.argv = ["mclab", *words]
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.suppress(SystemExit):
        main()
heavy = {"torch", "numpy", "optuna", "sqlalchemy", "dask", "distributed", "polars", "matplotlib", "scipy"}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_dry_run_imports_nothing_heavy(here: Path) -> None:
    space_file(here)
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")

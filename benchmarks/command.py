"""What a command costs before any work: `mclab --help` and the dry run of 500 cells, each in a process of its own."""

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import compare, spread

#: 25 segments x 5 widths x 4 weight decays, a choice between two learning rates, five seeds.
GRID = f"""
grid:
  model.mixer.segment: {list(range(1, 26))}
  model.dim: [8, 16, 24, 32, 40]
  train.weight_decay: [0, 0.1, 0.2, 0.3]
select: {{over: {{train.lr: [3.0e-3, 1.0e-2]}}, seeds: 2}}
seeds: 0..4
"""
REPEATS = 9


def call(*words: str) -> None:
    """Run `mclab` with these words; raises where it fails."""
    subprocess.run(
        [sys.executable, "-c", "from mclab.cli import main; main()", *words], check=True, capture_output=True
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder, "big.yaml")
        grid.write_text(GRID)
        sides = (lambda: call("--help"), lambda: call("ablate", "--grid", str(grid), "--dry-run"))
        helped, planned = compare(sides, REPEATS)
    print("\na command, milliseconds min / median / max")
    print(f"  mclab --help {spread(helped)} (at most 200)   dry run of 500 cells {spread(planned)} (at most 1000)")

"""`make bench`: one run, one thread. Reports nothing while the tests of what it measures are red."""

import os
import platform
import subprocess
import sys
from datetime import date

import torch

from benchmarks import command, data, layer, step
from mclab.train.host import prepare

MEASURED = ["tests/kernels", "tests/caching", "tests/models", "tests/tasks", "tests/train"]


def main() -> int:
    print("checking that what is measured is right (pytest) ...", flush=True)
    red = subprocess.run([sys.executable, "-m", "pytest", "-n", "2", *MEASURED], check=False).returncode
    if red:
        print("the tests are red: no figures", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    prepare("cpu")  # as training does; both sides of every comparison gain
    print(f"\n{date.today()}, {platform.machine()}, {os.cpu_count()} cores, 1 thread, torch {torch.__version__}")
    data.main()
    step.main()
    command.main()
    layer.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())

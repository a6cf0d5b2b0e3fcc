"""`make bench`: one thread. `python -m benchmarks titans growth` runs these parts alone.

A part reports nothing while the tests of what it measures are red.
"""

import importlib
import os
import platform
import subprocess
import sys
from datetime import date

from benchmarks import process

MODELS = ("tests/kernels", "tests/caching", "tests/models")
#: Each part, in the order of running, and the tests of what it measures.
PARTS = {
    "equality": MODELS,
    "data": ("tests/tasks",),
    "step": (*MODELS, "tests/tasks", "tests/train"),
    "command": (),
    "layer": MODELS,
    "titans": MODELS,
    "baselines": (*MODELS, "tests/memories"),
    "growth": MODELS,
    "memory": (),
    "rows": (),
    "route": (*MODELS, "tests/train"),
    "sequential": ("tests/report/test_sequential.py",),
    "decode": ("tests/nn",),
    "untrained": ("tests/kernels/test_fastweight.py",),
    "compile": (),
    "compiled": ("tests/train/test_compiled.py",),
}
#: Not timed before they are known to compute what memory-caching computes.
COMPARED = {"layer", "titans"}


def main(words: list[str]) -> int:
    unknown = [word for word in words if word not in PARTS]
    if unknown:
        print(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    chosen = set(words or PARTS)
    if chosen & COMPARED:
        chosen.add("equality")
    parts = [part for part in PARTS if part in chosen]
    tests = sorted({test for part in parts for test in PARTS[part]})
    if tests and _red(tests):
        print("the tests are red: no figures", file=sys.stderr)
        return 1
    process.prepare()
    import torch

    print(f"\n{date.today()}, {platform.machine()}, {os.cpu_count()} cores, 1 thread, torch {torch.__version__}")
    for part in parts:
        importlib.import_module(f"benchmarks.{part}").main()
    return 0


def _red(tests: list[str]) -> bool:
    print("checking that what is measured is right (pytest) ...", flush=True)
    return bool(subprocess.run([sys.executable, "-m", "pytest", "-n", "2", *tests], check=False).returncode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

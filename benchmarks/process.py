"""Work in a process of its own, whose peak memory is its alone."""

import importlib
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def alone(module: str, function: str, *arguments: str | int) -> Any:
    """What this function of a module of benchmarks returns, as far as JSON can tell; raises where it fails."""
    words = [sys.executable, "-m", "benchmarks.process", module, function, json.dumps(arguments)]
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{module}.{function}{arguments} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak() -> int:
    """Bytes that this process has had resident at most.

    Linux counts what `getrusage` reports from before exec, so a child of a large parent would seem to grow by nothing.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def prepare() -> None:
    """One thread, and what a process is set to before it trains; both sides of every comparison gain."""
    import torch

    from mclab.train.cpu_settings import prepare as host

    torch.set_num_threads(1)
    host("cpu")


if __name__ == "__main__":
    prepare()
    own = importlib.import_module(f"benchmarks.{sys.argv[1]}")
    print(json.dumps(getattr(own, sys.argv[2])(*json.loads(sys.argv[3]))))

"""A Dask cluster as a user starts one by hand: a scheduler and workers, each a process of its own, on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from distributed import Client

ROOT = Path(__file__).parents[1]
DASK = Path(sys.executable).with_name("dask")
#: Seconds after which what a test waits for will not come: a guard against hangs, not a bound.
DEADLINE = 120.0


def wait_until(true: Callable[[], Any], what: str) -> None:
    """Ask again and again until it is so."""
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, f"waited in vain for: {what}"
        time.sleep(0.02)


class Cluster:
    """A scheduler at `address`; `client` is the test's own way to ask it."""

    def __init__(self, folder: Path, settings: Mapping[str, object], **env: str) -> None:
        self._folder, self._processes = folder, list[subprocess.Popen[str]]()
        file = folder / "scheduler.json"
        named = {f"DASK_DISTRIBUTED__SCHEDULER__{name}": str(value) for name, value in settings.items()}
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", file, env={**named, **env})
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), "a scheduler")
        self.address: str = json.loads(file.read_text())["address"]
        self.client = Client(self.address, set_as_default=False)

    def worker(self, *options: object, nanny: bool = False, **env: str) -> tuple[subprocess.Popen[str], str]:
        """Start a worker of one thread; its process and its address once it is connected."""
        before = set(self.workers)
        words = [self.address, "--nthreads", "1", "--local-directory", self._folder, "--no-nanny"]
        process = self._start("worker", *(words[:-1] if nanny else words), *options, env=env)
        wait_until(lambda: set(self.workers) - before, "a worker")
        return process, next(iter(set(self.workers) - before))

    @property
    def workers(self) -> dict[str, int]:
        """The workers that the scheduler knows."""
        return dict(self.client.nthreads())

    def busy(self, address: str) -> bool:
        """Whether the scheduler has given the worker something to do."""
        return bool(self.client.processing().get(address))

    def _start(self, kind: str, *words: object, env: Mapping[str, str]) -> subprocess.Popen[str]:
        quiet = ["--no-dashboard", *(("--dashboard-address", "127.0.0.1:0") if kind == "scheduler" else ())]
        command = [str(DASK), kind, "--host", "127.0.0.1", *quiet, *map(str, words)]
        paths = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), str(ROOT)]))
        with open(self._folder / "log", "a") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **env, "PYTHONPATH": paths},
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def end_workers(self) -> None:
        """End all but the scheduler, stopped or not; nothing of them is worth a goodbye."""
        while len(self._processes) > 1:
            _end(self._processes.pop())
        wait_until(lambda: not self.workers, "the scheduler to miss them")

    def close(self) -> None:
        """End everything."""
        self.client.close()
        while self._processes:
            _end(self._processes.pop())


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

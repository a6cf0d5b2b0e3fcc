"""Commands in processes of their own that start in a hundredth of a second: forks of one that has imported everything.

Killed in whatever they do, as by `kill -9` or for want of memory.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["torch", "optuna", "polars", "scipy.stats", "matplotlib", "mclab.verbs.ablate", "mclab.sweep.command", __name__]
)
#: Seconds in which a command must end that is left alone: a guard against hangs.
PATIENCE = 120


#: What takes as long as a hundred small commands is not drawn unless it is what is attacked.
_DRAWS = ("mclab.report.plot.kinds.write_plots", "mclab.report.sweeps.plots.write_plots")


@contextmanager
def no_drawing() -> Iterator[None]:
    """Commands in this process draw nothing."""
    with patch(_DRAWS[0], lambda *_, **__: []), patch(_DRAWS[1], lambda *_, **__: []):
        yield


def _command(words: Sequence[str], folder: Path, prepared: Callable[[], None] | None) -> None:
    """What the fork does; its words go to files in `folder`."""
    from mclab.cli import main

    os.chdir(folder)
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    sys.argv = ["mclab", *words]
    if prepared:
        prepared()
    with no_drawing():
        main()


class Command:
    """A command that runs in `folder`; `err` is what it said, with those before it there."""

    def __init__(self, words: Sequence[object], folder: Path, prepared: Callable[[], None] | None = None) -> None:
        self.folder = folder
        given = ([str(word) for word in words], folder, prepared)
        self._process: BaseProcess = _FORKS.Process(target=_command, args=given)
        self._process.start()

    def kill(self) -> bool:
        """Whether it was there to be killed."""
        self._process.kill()
        self._process.join()
        return self._process.exitcode == -9

    def wait(self) -> int:
        """Its exit code."""
        self._process.join(PATIENCE)
        if self._process.exitcode is None:
            self.kill()
            raise AssertionError(f"has not ended after {PATIENCE} s: {self.err}")
        return self._process.exitcode

    def wait_until(self, true: Callable[[], bool], more_s: float) -> None:
        """Until it is so and a moment more, or the command has ended."""
        end = time.monotonic() + PATIENCE
        while not true() and self._process.is_alive():
            assert time.monotonic() < end, f"waited in vain: {self.err}"
            time.sleep(0.001)
        self._process.join(more_s)

    @property
    def err(self) -> str:
        path = self.folder / "err"
        return path.read_text(errors="replace") if path.exists() else ""


def ended(words: Sequence[object], folder: Path, prepared: Callable[[], None] | None = None) -> tuple[int, str]:
    """Run a command to its end, `prepared` called in its process before: its exit code, and what it said."""
    (folder / "err").unlink(missing_ok=True)
    command = Command(words, folder, prepared)
    return command.wait(), command.err

"""Keep a file that names the runs in training, so that the next command knows which runs trained when a process died.

A run can end its process without a message: the memory is full, or a module crashes. A `kill -9` from outside looks the
same. A death of the process counts against every run of the pack that was training, and each of these runs trains alone
from then on. An interrupt does not count, because it ends the process in order. A restart of the machine, which the
boot id shows, does not count either. The count of a run starts again at one if the run got further than at its last
death: if it has a newer checkpoint, or trained at least a tenth of its steps more. After `DEATHS` deaths in a row
without such progress, the run is stored as failed.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mclab.atomic_files import read_whole, write_whole

#: The file in the run folder. It exists while a run trains, or while a death is remembered.
NAME = "in_flight.json"
#: The number of deaths in a row after which a run is given up.
DEATHS = 2
#: The count of deaths starts again at one if a run got further than at its last death by this share of its steps.
FURTHER = 0.1
#: The least number of seconds between two writes of the progress of runs.
_EVERY = 0.1


@dataclass(frozen=True)
class Death:
    """The deaths in a row of processes that trained one run.

    `times` is their number, `share` the largest share of the run's steps that was reached at a death, and `checkpoint`
    the step of the run's newest checkpoint then.
    """

    times: int = 0
    share: float = 0.0
    checkpoint: int = 0

    def again(self, share: float, checkpoint: int) -> "Death":
        """Return the deaths after one more, at `share` of the steps and with a newest checkpoint at `checkpoint`."""
        further = checkpoint > self.checkpoint or share > self.share + FURTHER
        return Death(1 if further else self.times + 1, max(share, self.share), max(checkpoint, self.checkpoint))


def reason(times: int, share: float) -> str:
    """Return one line that says why a run is given up after `times` deaths of the process, at `share` of its steps."""
    where = f"at {share:.0%} of its steps" if share else "at its start"
    return (
        f"the process died {times} times in a row while this run trained, {where}; "
        f"possible causes are too little memory, a crash in a module, or a kill from outside"
    )


def _death(told: Mapping[str, Any]) -> Death:
    return Death(int(told["times"]), float(told["share"]), int(told["checkpoint"]))


def boot_id() -> str:
    """Return an id that changes when the machine is started again; empty if the system gives none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


class Flights:
    """The file `in_flight.json` of a run folder: which runs are training, and the deaths of earlier processes.

    Only the holder of the folder's lock may use it. `checkpoints` maps a run id to the step of the run's checkpoint. If
    the file is damaged or cannot be written, a death may not be counted; nothing else is lost.
    """

    def __init__(self, folder: Path, checkpoints: Mapping[str, int]) -> None:
        self._path = folder.absolute() / NAME
        self._now: tuple[str, ...] = ()
        self._share, self._written = 0.0, 0.0
        self._deaths: dict[str, Death] = {}
        self._load(checkpoints)

    def _load(self, checkpoints: Mapping[str, int]) -> None:
        try:
            note = json.loads(read_whole(self._path))
            if not all(run.isascii() and run.isalnum() for run in (*note["deaths"], *note["now"])):
                return
            self._deaths = {run: _death(told) for run, told in note["deaths"].items()}
            if note["host"] == socket.gethostname() and note["boot"] != boot_id():
                return
            for run in note["now"]:
                before = self._deaths.get(run, Death())
                self._deaths[run] = before.again(float(note["share"]), checkpoints.get(run, 0))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return

    def acquit(self, over: Callable[[str], bool]) -> None:
        """Forget the deaths of runs for which `over` is true: their results were stored before the process died."""
        self._deaths = {run: death for run, death in self._deaths.items() if not over(run)}
        self._write()

    def suspect(self, run: str) -> bool:
        """Return whether a process has died while `run` trained. Such a run trains alone, after all others."""
        return run in self._deaths

    def poison(self, run: str) -> str | None:
        """Return why the run with the id `run` is not tried again; `None` if it may be tried."""
        death = self._deaths.get(run)
        return reason(death.times, death.share) if death and death.times >= DEATHS else None

    def begin(self, runs: Sequence[str]) -> None:
        """Write that exactly these runs are training now.

        If the process dies, the death counts against each of them.
        """
        self._now, self._share = tuple(runs), 0.0
        self._write()

    def reached(self, share: float) -> None:
        """Write that the runs in training have reached this share of their steps, at most every 0.1 s."""
        self._share = share
        if time.monotonic() - self._written > _EVERY:
            self._write()

    def end(self) -> None:
        """Write that no run is training any more, without regard to results."""
        if self._now:
            self._now = ()
            self._write()

    def settle(self, runs: Sequence[str]) -> None:
        """Write that `runs` have results: forget their deaths. No run is training any more."""
        for run in runs:
            self._deaths.pop(run, None)
        self._now = ()
        self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        with suppress(OSError):
            if not self._now and not self._deaths:
                self._path.unlink(missing_ok=True)
                return
            note: dict[str, Any] = {"host": socket.gethostname(), "boot": boot_id(), "pid": os.getpid()}
            note |= {"now": self._now, "share": self._share}
            note["deaths"] = {run: asdict(death) for run, death in self._deaths.items()}
            # Without fsync, which takes longer than an evaluation. Only a restart of the machine can lose the file,
            # and such a death does not count.
            write_whole(self._path, json.dumps(note).encode(), durable=False)

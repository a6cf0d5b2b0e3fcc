"""Which run trains in this process, in a file, so that the next command knows at which run the last one died.

A run can end its process without any message: out of memory, a fault in a module. So can a `kill -9` from outside,
which looks the same. What counts against a run is a death of the process while it trained; against each run of its
pack, and these train alone from then on. An interrupt does not count, since it ends the process in order, nor does a
restart of the machine, known by its boot id. A run that gets further than at its last death is counted anew: with a
newer checkpoint, or with a tenth of its steps more. After `DEATHS` in a row without that it is stored as failed.
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

#: The file in the run folder; there while something trains, or while a death is remembered.
NAME = "in_flight.json"
#: Deaths in a row after which a run is given up.
DEATHS = 2
#: The share of its steps by which a run must have got further to count as innocent of the death before.
FURTHER = 0.1
#: Seconds between two notes of how far a run is.
_EVERY = 0.1


@dataclass(frozen=True)
class Death:
    """How often a run's process has died in a row; the furthest share of its steps then, and its newest checkpoint."""

    times: int = 0
    share: float = 0.0
    checkpoint: int = 0

    def again(self, share: float, checkpoint: int) -> "Death":
        """After another death, so far on."""
        further = checkpoint > self.checkpoint or share > self.share + FURTHER
        return Death(1 if further else self.times + 1, max(share, self.share), max(checkpoint, self.checkpoint))


def reason(times: int, share: float) -> str:
    """Why a run whose process died so often is given up, in a line."""
    where = f"at {share:.0%} of its steps" if share else "at its start"
    return (
        f"the process died {times} times in a row while this trained, {where} "
        f"(out of memory, a crash in a module, or a kill from outside)"
    )


def _death(told: Mapping[str, Any]) -> Death:
    return Death(int(told["times"]), float(told["share"]), int(told["checkpoint"]))


def boot_id() -> str:
    """The machine since it was last started; empty where the system does not tell."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


class Flights:
    """The note of a run folder. For the holder of its lock; `checkpoints` says to which step those of a run reach.

    A note that cannot be written, or is damaged, costs a death that is not known, no more.
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
        """Runs that are over have killed nobody: the process died after it had stored their result."""
        self._deaths = {run: death for run, death in self._deaths.items() if not over(run)}
        self._write()

    def suspect(self, run: str) -> bool:
        """Whether the process has died at the run: it shall train alone, and after the others."""
        return run in self._deaths

    def poison(self, run: str) -> str | None:
        """Why the run with this id is not to be tried again; `None` for others."""
        death = self._deaths.get(run)
        return reason(death.times, death.share) if death and death.times >= DEATHS else None

    def begin(self, runs: Sequence[str]) -> None:
        """These train from now on, and no others."""
        self._now, self._share = tuple(runs), 0.0
        self._write()

    def reached(self, share: float) -> None:
        """They have come to this share of their steps."""
        self._share = share
        if time.monotonic() - self._written > _EVERY:
            self._write()

    def end(self) -> None:
        """Nothing trains, whatever became of it."""
        if self._now:
            self._now = ()
            self._write()

    def settle(self, runs: Sequence[str]) -> None:
        """These have come to a result: deaths before it are forgotten, and nothing trains."""
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
            # Without fsync, which takes longer than an evaluation: what a restart of the machine loses would not count.
            write_whole(self._path, json.dumps(note).encode(), durable=False)

"""Find out which process holds a trial, whether it is alive, and how often processes died while they trained the trial.

Optuna's heartbeat works neither with ask and tell nor with journals. A process on the same machine is looked up by its
process id. A process on another machine increases a number in the study every few seconds; a process that sees this
number unchanged for long enough, by its own clock, regards the other process as dead.

Deaths are counted as in a run folder (`mclab.store.crashes`), but the count is kept in the study, since both processes
can see it there. It passes from a trial to the trial that takes over its parameters, perhaps on another machine.
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, SIGTERM, pthread_sigmask
from typing import Any

from optuna.trial import FrozenTrial

from mclab.store.crashes import DEATHS, Death, boot_id, reason

#: Seconds between two increases of the number, and seconds after which a process on another machine counts as dead.
BEAT, LEASE = 10.0, 90.0
#: The names of owners in this process whose search has ended. The process itself may live on, e.g. that of a notebook.
_retired = set[str]()
#: Attributes of a trial: the share of its steps that its owner has trained, if the owner trains it itself, not in a
#: worker; and the deaths at earlier trials with the same parameters.
TRAINING, BEFORE = "training", "deaths"


@dataclass(frozen=True)
class Owner:
    """A process that holds trials: a unique name, its host, its process id, its start time, and where this id is valid.

    `place` is the boot id and the namespace of process ids; empty if the system gives none.
    """

    name: str
    host: str
    pid: int
    started: str
    place: str

    @classmethod
    def me(cls) -> "Owner":
        """Return the owner that stands for this process, with a new name."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex[:12], socket.gethostname(), pid, (_stat(pid) or ["", ""])[1], _place())

    def as_dict(self) -> dict[str, Any]:
        """Return the owner as plain data for an attribute of a trial."""
        return asdict(self)

    @classmethod
    def of(cls, data: Any) -> "Owner | None":
        """Return the owner that `as_dict` turned into `data`; `None` for other data."""
        try:
            return cls(**data)
        except TypeError:
            return None

    def retire(self) -> None:
        """Note that this owner has ended its search."""
        _retired.add(self.name)

    def restarted(self, me: "Owner") -> bool:
        """Return whether the owner was on the machine of `me` and this machine has been started again since."""
        boots = [each.place.partition(" ")[0] for each in (self, me)]
        return self.host == me.host and all(boots) and boots[0] != boots[1]

    def in_words(self) -> str:
        """Return the process in words, for a message."""
        return f"process {self.pid} on {self.host}"


def _place() -> str:
    """Return the boot id and the namespace in which process ids are valid; empty if the system gives none."""
    try:
        return f"{boot_id()} {os.readlink('/proc/self/ns/pid')}" if boot_id() else ""
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """Return the state and the start time of a process; `None` if there is no such process."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return [fields[0], fields[19]]
    return None


@contextmanager
def beating(tell: Callable[[int], None]) -> Iterator[None]:
    """While the body runs, call `tell` regularly with an increasing number, which shows that this process lives."""
    ended = threading.Event()

    def beat() -> None:
        count = 0
        while not ended.wait(BEAT):
            count += 1
            with suppress(Exception):  # training continues even if the database does not answer for a while
                tell(count)

    thread = threading.Thread(target=beat, daemon=True)
    before = pthread_sigmask(SIG_BLOCK, {SIGINT, SIGTERM})
    thread.start()
    pthread_sigmask(SIG_SETMASK, before)
    try:
        yield
    finally:
        ended.set()
        thread.join(1.0)


class Watch:
    """Decides which owners are dead, from what this process has seen of them.

    `beats` returns the number that the owner with a given name increases in the study.
    """

    def __init__(self, me: Owner, beats: Callable[[str], int | None], clock: Callable[[], float] = time.monotonic):
        self._me, self._beats, self._clock = me, beats, clock
        self._seen: dict[str, tuple[int | None, float]] = {}

    def forget(self) -> None:
        """Forget the numbers seen so far. While the study is out of reach, nobody can increase a number."""
        self._seen.clear()

    def dead(self, owner: Owner | None) -> bool:
        """Return whether the process of `owner` is gone; `True` for `None`.

        A trial without an owner has lost its process, since the caller holds the lock under which owners are written.
        """
        if owner is None:
            return True
        if owner.name in _retired:
            return True
        if owner.name == self._me.name:
            return False
        if owner.place and owner.place == self._me.place:
            found = _stat(owner.pid)
            return found is None or found[0] in "ZX" or found[1] != owner.started
        beat, now = self._beats(owner.name), self._clock()
        before = self._seen.get(owner.name)
        if before is None or before[0] != beat:
            self._seen[owner.name] = (beat, now)
            return False
        return now - before[1] > LEASE


def deaths_before(trial: FrozenTrial) -> Death:
    """Return the deaths at earlier trials whose parameters this trial has taken over."""
    told = trial.user_attrs.get(BEFORE)
    return Death(**told) if told else Death()


def deaths_now(trial: FrozenTrial, owner: Owner | None, me: Owner) -> Death:
    """Return `deaths_before`, plus the death of the trial's present owner if that counts.

    It counts if the owner trained the trial in its own process, and its machine has not been started again since.
    """
    share = trial.user_attrs.get(TRAINING)
    if share is None or (owner is not None and owner.restarted(me)):
        return deaths_before(trial)
    return deaths_before(trial).again(float(share), 0)


def death_attrs(death: Death) -> Mapping[str, Any]:
    """Return the attributes with which a trial passes `death` on to the trial that takes over its parameters."""
    return {BEFORE: asdict(death)} if death.times else {}


def given_up(death: Death) -> str | None:
    """Return why nobody takes over a trial with this `death`; `None` if it may be taken over."""
    return reason(death.times, death.share) if death.times >= DEATHS else None

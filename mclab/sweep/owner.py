"""Who holds a trial, whether that process still lives, and how often it died at one.

Optuna's heartbeat knows neither ask and tell nor journals. A process on the same machine is looked up by its id. One
elsewhere is watched: it counts up a number in the study every few seconds, and whoever sees the number unchanged for
long enough, by their own clock, takes it for dead.

Trials that end the process that trains them are counted as in a run folder (`mclab.store.crashes`), but in the study,
along the trials that take them over: a process on another machine may do so, and the study is all that both see.
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

#: Seconds between two signs of life, and of silence until a process elsewhere is given up.
BEAT, LEASE = 10.0, 90.0
#: Names of owners that were this very process and have ended their search: it may live on, as a notebook's does.
_retired = set[str]()
#: Attributes of a trial: the share of its steps at which its owner's own process trains it, and what came before it.
TRAINING, BEFORE = "training", "deaths"


@dataclass(frozen=True)
class Owner:
    """A process: a name of its own, the machine's, the process id and when it started, and where that id holds.

    `place` is the boot and the namespace of process ids; empty where the system does not tell.
    """

    name: str
    host: str
    pid: int
    started: str
    place: str

    @classmethod
    def me(cls) -> "Owner":
        """This process."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex[:12], socket.gethostname(), pid, (_stat(pid) or ["", ""])[1], _place())

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a trial's attribute."""
        return asdict(self)

    @classmethod
    def of(cls, data: Any) -> "Owner | None":
        """What `as_dict` gave; None for anything else."""
        try:
            return cls(**data)
        except TypeError:
            return None

    def retire(self) -> None:
        """It works on nothing any more."""
        _retired.add(self.name)

    def restarted(self, me: "Owner") -> bool:
        """Whether its machine, which is this one, has been started again since."""
        boots = [each.place.partition(" ")[0] for each in (self, me)]
        return self.host == me.host and all(boots) and boots[0] != boots[1]

    def in_words(self) -> str:
        """The process in words."""
        return f"process {self.pid} on {self.host}"


def _place() -> str:
    """Where process ids mean what they mean here."""
    try:
        return f"{boot_id()} {os.readlink('/proc/self/ns/pid')}" if boot_id() else ""
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """State and start of a process; None where there is none."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return [fields[0], fields[19]]
    return None


@contextmanager
def beating(tell: Callable[[int], None]) -> Iterator[None]:
    """Count up while the body runs, so that processes elsewhere see that this one lives."""
    ended = threading.Event()

    def beat() -> None:
        count = 0
        while not ended.wait(BEAT):
            count += 1
            with suppress(Exception):  # a database that is away for a while is no reason to stop training
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
    """Which owners are dead, by what this process has seen of them. `beats` reads an owner's number in the study."""

    def __init__(self, me: Owner, beats: Callable[[str], int | None], clock: Callable[[], float] = time.monotonic):
        self._me, self._beats, self._clock = me, beats, clock
        self._seen: dict[str, tuple[int | None, float]] = {}

    def forget(self) -> None:
        """What was seen so far is no sign any more: nothing came through from anybody."""
        self._seen.clear()

    def dead(self, owner: Owner | None) -> bool:
        """True for a process that is gone, and for none at all: who asks holds the lock under which owners sign."""
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
    """The deaths of the owners of the trials whose parameters this one took over."""
    told = trial.user_attrs.get(BEFORE)
    return Death(**told) if told else Death()


def deaths_now(trial: FrozenTrial, owner: Owner | None, me: Owner) -> Death:
    """Those, and its own owner's, where that counts: it trained the trial, and its machine has not started again."""
    share = trial.user_attrs.get(TRAINING)
    if share is None or (owner is not None and owner.restarted(me)):
        return deaths_before(trial)
    return deaths_before(trial).again(float(share), 0)


def death_attrs(death: Death) -> Mapping[str, Any]:
    """What the trial is told that takes another one over."""
    return {BEFORE: asdict(death)} if death.times else {}


def given_up(death: Death) -> str | None:
    """Why nobody takes it over; `None` while somebody does."""
    return reason(death.times, death.share) if death.times >= DEATHS else None

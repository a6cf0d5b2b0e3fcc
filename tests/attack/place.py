"""What must hold of a command whatever it is given: its end, its words, and what it has touched."""

import os
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mclab.printable import printable
from tests.commands import Done, mclab

#: Seconds that a single command may take: a guard against hangs, a hundred times what any should need.
PATIENCE = 60
#: What a command that reads may write again.
_REPORTS = ("tables", "plots")
#: What a command that trains may write in its run folder beside the records.
_RUNNING = (
    *_REPORTS,
    "records",
    "curves",
    "weights",
    "checkpoints",
    "plan.json",
    "grid.yaml",
    "lock",
    "in_flight.json",
    "plan.json.damaged",
)
_SEARCHING = ("trials.json", "space.yaml", "journal.log", "journal.log.append", "journal.log.claim")


class TooLongError(BaseException):
    """A command has not ended; no `except Exception` of its own shall swallow that."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise `TooLongError` in the body after so many seconds."""

    def stop(number: int, frame: Any) -> None:
        raise TooLongError(f"has not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


Stamp = tuple[int, int, int]


def stamps(folder: Path) -> dict[str, Stamp]:
    """Every file and folder below one, with what changes when it is written."""
    found: dict[str, Stamp] = {}
    for entry in os.scandir(folder):
        stat = entry.stat(follow_symlinks=False)
        if entry.is_dir(follow_symlinks=False):
            found[entry.name] = (stat.st_ino, 0, 0)
            found |= {f"{entry.name}/{name}": stamp for name, stamp in stamps(Path(entry.path)).items()}
        else:
            found[entry.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


@dataclass
class Place:
    """A folder to stand in, `here`, with a run folder `run` in it and files of the user's around both.

    `faults` gathers what did not hold.
    """

    root: Path
    run: Path = Path("runs/it")
    faults: list[str] = field(default_factory=list)

    @property
    def here(self) -> Path:
        return self.root / "home"

    @contextmanager
    def set_up(self, base: Path | None = None) -> Iterator[None]:
        """Stand there, the run folder a copy of `base`; all gone at the end."""
        self.here.mkdir(parents=True)
        for folder in (self.root, self.here):
            (folder / ".notes.tmp").write_text("mine")
            (folder / "notes.txt").write_text("mine")
        if base is not None:
            shutil.copytree(base, self.here / self.run)
        before = Path.cwd()
        os.chdir(self.here)
        try:
            yield
        finally:
            os.chdir(before)
            shutil.rmtree(self.root)

    def command(self, *words: object, writes: Sequence[str] = _REPORTS) -> Done | None:
        """Run it, and look at its end, its words and what it wrote: in the run folder, nothing but `writes`.

        `None` where it did not come to an end of its own.
        """
        before = stamps(self.root)
        try:
            with limit(PATIENCE):
                done = mclab(*words)
        except (Exception, TooLongError) as error:
            self._fault(words, f"{type(error).__name__}: {error}{_where(error)}")
            done = None
        else:
            self._look(words, done)
        self._compare(words, before, stamps(self.root), writes)
        return done

    def _look(self, words: Sequence[object], done: Done) -> None:
        if done.code not in (0, 2, 3):
            self._fault(words, f"ended with {done.code}: {done.err}")
        if done.code == 2 and not done.err.strip():
            self._fault(words, "ended with 2 without a word")
        if "Traceback" in done.err:
            self._fault(words, f"shows a traceback: {done.err}")
        for text in (done.out, done.err):
            if printable(text) != text:
                self._fault(words, f"writes hidden characters: {text!a}")

    def _compare(
        self, words: Sequence[object], before: dict[str, Stamp], after: dict[str, Stamp], writes: Sequence[str]
    ) -> None:
        run = re.escape(f"home/{self.run}")
        inside = f"home/{self.run.parent}|{run}|{run}/({'|'.join(map(re.escape, writes))})(/.*)?"
        may = re.compile(inside) if writes else None
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name) and not (may and may.fullmatch(name)):
                what = "removed" if name not in after else "made" if name not in before else "changed"
                self._fault(words, f"{what} {name}")

    def fault(self, what: str) -> None:
        """Something else that did not hold."""
        self.faults.append(what)

    def _fault(self, words: Sequence[object], what: str) -> None:
        self.faults.append(f"mclab {' '.join(map(ascii, map(str, words)))[:300]}\n    {what[:1500]}")


#: What commands write that run something: a grid, a search.
RUNNING, SEARCHING = _RUNNING, (*_RUNNING, *_SEARCHING)


def _where(error: BaseException) -> str:
    """The innermost places of this project's in a traceback."""
    found, frame = [], error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        if "/mclab/" in code.co_filename:
            found.append(f"{code.co_filename.rpartition('/mclab/')[2]}:{frame.tb_lineno} {code.co_name}")
        frame = frame.tb_next
    return f" ({' < '.join(reversed(found[-4:]))})" if found else ""

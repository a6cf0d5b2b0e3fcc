"""How far a command is: a bar on a terminal and in a notebook, else a plain line now and then, on standard error."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from mclab.cli.output import remark

if TYPE_CHECKING:
    from mclab.runner import Ahead, Progress

#: Seconds between two drawings of the bar, and the least and the most between two plain lines.
_TICK, LEAST, MOST = 1.0, 1.0, 30.0

Show = Callable[["Progress"], None]
Say = Callable[[str], None]


@contextmanager
def progress() -> Iterator[tuple[Show, Say]]:
    """Yields a function that shows progress, and one that prints a line meanwhile."""
    if _on_a_terminal() or "ipykernel" in sys.modules:
        with _bar() as shown:
            yield shown
    else:
        lines = Lines(remark)
        with _ticking(lines.again):
            yield lines, remark


def _on_a_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class Lines:
    """A line each tenth of the runs and each 30 seconds, whichever comes first, at most one a second.

    At the start only what has to be done before the first run, nothing at the end: other lines say these.
    """

    def __init__(self, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._began = self._last = clock()
        self._tenth = 0
        self._now: Progress | None = None

    def __call__(self, now: "Progress") -> None:
        """Say how far it is, if it is time."""
        stage = now.stage()
        if self._now is None and stage:
            self._say(stage)
        self._now = now
        time, tenth = self._clock(), 10 * now.done // max(1, now.total)
        quiet = time - self._last
        if now.done < now.total and (quiet >= MOST or (tenth > self._tenth and quiet >= LEAST)):
            self._last, self._tenth = time, tenth
            step = f", step {now.step}/{now.steps} of the next" if now.steps else ""
            ahead, elapsed = now.ahead(), f"{time - self._began:.0f} s elapsed"
            told = [f"{now.done}/{now.total} {now.what} done{step}", stage, _share(ahead), elapsed, _left(ahead)]
            self._say(", ".join(part for part in told if part))

    def again(self) -> None:
        """Say it again, if it is time."""
        if self._now is not None:
            self(self._now)


def _share(ahead: "Ahead | None") -> str:
    return f"{100 * ahead.share:.0f} %" if ahead and ahead.least is None else ""


def _left(ahead: "Ahead | None") -> str:
    """The time left: measured, or the range that was predicted while nothing is measured."""
    from mclab.runner.estimate import duration
    from mclab.runner.time_range import range_text

    if ahead is None:
        return ""
    if ahead.least is None:
        return f"{duration(ahead.seconds)} left"
    if not ahead.least:
        return f"up to {range_text(ahead.seconds, ahead.seconds)} left"
    return f"{range_text(ahead.least, ahead.seconds)} left"


#: The bar fills with the work done, where that is known; the runs are counted beside it.
_FORMAT = "{percentage:3.0f} %|{bar}| {desc} [{elapsed}{postfix}]"


@contextmanager
def _bar() -> Iterator[tuple[Show, Say]]:
    from tqdm.auto import tqdm

    with tqdm(total=1.0, bar_format=_FORMAT, leave=False, **_size()) as bar:
        drawn = _Drawn(bar)

        def say(line: str) -> None:
            with bar.external_write_mode():
                remark(line)

        with _ticking(drawn.again):
            yield drawn, say
        bar.n = bar.total  # a notebook's bar that ends before stays, in red


class _Drawn:
    """A bar that shows progress. What is ahead is asked for when a run ends and once a second, not at every step."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._now: Progress | None = None
        self._ahead: Ahead | None = None

    def __call__(self, now: "Progress") -> None:
        """Show how far it is."""
        if self._now is None or now.done != self._now.done:
            self._ahead = now.ahead()
        self._now = now
        self._draw(now)

    def again(self) -> None:
        """Show it again, as it is by now."""
        if self._now is not None:
            self._ahead = self._now.ahead()
            self._draw(self._now)

    def _draw(self, now: "Progress") -> None:
        self._bar.n = self._ahead.share if self._ahead else now.done / max(1, now.total)
        step = f"step {now.step}/{now.steps}" if now.steps else ""
        parts = (now.stage(), _left(self._ahead), step)
        self._bar.set_postfix_str(", ".join(part for part in parts if part), refresh=False)
        self._bar.set_description_str(f"{now.done}/{now.total}")


def _size() -> dict[str, int]:
    """A terminal that does not know its size (in containers, under `script`) has 0 rows: there tqdm shows nothing."""
    if not _on_a_terminal() or all(os.get_terminal_size(sys.stderr.fileno())):
        return {}
    columns, rows = get_terminal_size()
    return {"ncols": columns, "nrows": rows}


@contextmanager
def _ticking(draw: Callable[[], object]) -> Iterator[None]:
    """Draw once a second, so that the clock runs while no run ends. The thread leaves signals to the main one."""
    ended = threading.Event()

    def tick() -> None:
        with suppress(OSError):  # nobody reads any more
            while not ended.wait(_TICK):
                draw()

    thread = threading.Thread(target=tick, daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    thread.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        yield
    finally:
        ended.set()
        thread.join()

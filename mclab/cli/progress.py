"""Show the progress of a command on standard error: a bar on a terminal or in a notebook, else plain lines."""

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

#: Seconds between two updates of the bar; the smallest and the largest number of seconds between two plain lines.
_TICK, LEAST, MOST = 1.0, 1.0, 30.0

Show = Callable[["Progress"], None]
Say = Callable[[str], None]


@contextmanager
def progress() -> Iterator[tuple[Show, Say]]:
    """Yield two functions: one shows progress, the other prints a line without disturbing the bar."""
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
    """Prints a line at each tenth of the runs and after 30 seconds without one, but at most one line a second.

    The first report prints only the stage before the first run, if there is one. The end of the last run prints
    nothing, since other lines of the command report start and end.
    """

    def __init__(self, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._began = self._last = clock()
        self._tenth = 0
        self._now: Progress | None = None

    def __call__(self, now: "Progress") -> None:
        """Receive a progress report, and print a line if one is due."""
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
        """Print a line from the last report if one is due."""
        if self._now is not None:
            self(self._now)


def _share(ahead: "Ahead | None") -> str:
    return f"{100 * ahead.share:.0f} %" if ahead and ahead.least is None else ""


def _left(ahead: "Ahead | None") -> str:
    """Return the remaining time in words, from the measured speed, or as predicted if nothing is measured yet."""
    from mclab.runner.estimate import duration
    from mclab.runner.time_range import range_text

    if ahead is None:
        return ""
    if ahead.least is None:
        return f"{duration(ahead.seconds)} left"
    if not ahead.least:
        return f"up to {range_text(ahead.seconds, ahead.seconds)} left"
    return f"{range_text(ahead.least, ahead.seconds)} left"


#: The bar shows the share of the work that is done, or of the runs if that is unknown; `desc` counts the runs.
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
        bar.n = bar.total  # otherwise a notebook would keep the unfinished bar, in red


class _Drawn:
    """A bar that shows progress.

    The remaining time is estimated once a second and when a run ends, not at every step.
    """

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._now: Progress | None = None
        self._ahead: Ahead | None = None

    def __call__(self, now: "Progress") -> None:
        """Receive a progress report and draw it."""
        if self._now is None or now.done != self._now.done:
            self._ahead = now.ahead()
        self._now = now
        self._draw(now)

    def again(self) -> None:
        """Draw the last report again, with a new estimate of the remaining time."""
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
    """Return the size to pass to tqdm on a terminal that reports 0 rows or columns, where tqdm would show nothing.

    Terminals in containers and under `script` report that. The result is empty for any other terminal.
    """
    if not _on_a_terminal() or all(os.get_terminal_size(sys.stderr.fileno())):
        return {}
    columns, rows = get_terminal_size()
    return {"ncols": columns, "nrows": rows}


@contextmanager
def _ticking(draw: Callable[[], object]) -> Iterator[None]:
    """Within the block, call `draw` once a second from a thread, so that the time is updated while no run ends.

    The thread blocks SIGINT and SIGTERM, so that the main thread gets them.
    """
    ended = threading.Event()

    def tick() -> None:
        with suppress(OSError):  # standard error was closed
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

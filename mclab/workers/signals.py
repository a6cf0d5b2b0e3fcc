"""Handle Ctrl-C with worker processes: the terminal sends it to all processes, but only the parent may react to it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delay a Ctrl-C or a SIGTERM until the end of the block.

    Threads that are started in the block, and processes that are started by them, never get a Ctrl-C, since they
    inherit the blocked signal. Outside the main thread, which gets no signals, this is the only effect.
    """
    seen: list[int] = []

    def note(number: int, frame: Any) -> None:
        seen.append(number)

    main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.signal(number, note) for number in _STOPS} if main else {}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if seen:
            signal.raise_signal(seen[0])

"""Restore the state of the process after a user's code has run, and report what the code changed.

A user's module may do what its author's own scripts do: change to another folder, make fp64 the default, seed the
generators. Without this module, other runs in the process would then have another folder, precision or random numbers.
"""

import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import torch

#: A function that is called with the names of what was changed.
Tell = Callable[[list[str]], None]
#: The name of the state that every random draw changes.
DICE = "torch's random numbers"
#: A seed that nobody else uses, so that it is noticed when a user's code seeds the generators.
_FIXED = 0x6D636C62
_SIGNALS = {each.name: int(each) for each in signal.Signals}


@dataclass(frozen=True)
class _Thing:
    """A part of the process's state: its name, a function that reads it, and one that writes it back."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]

    def told(self, before: Any) -> str | None:
        """Return `None` if the state equals `before`, else its name, followed by the changed keys of a dictionary."""
        now = self.read()
        if before is None or now == before:
            return None
        parts = [key for key in {**before, **now} if before.get(key) != now.get(key)] if isinstance(now, dict) else []
        return f"{self.name} {', '.join(parts)}" if parts else self.name


@contextmanager
def kept(tell: Tell | None = None, quick: bool = False) -> Iterator[None]:
    """Restore at the end what the block changed in the process. If it changed anything, call `tell` with the names.

    This takes a millisecond. With `quick` it takes ten microseconds and covers only what the following code of mclab
    needs.
    """
    before = [(thing, thing.read()) for thing in (_QUICK if quick else _THINGS)]
    try:
        with nullcontext() if quick else _handlers_forgotten():
            yield
    finally:
        changed = [(thing, value, name) for thing, value in before if (name := thing.told(value))]
        for thing, value, _ in changed:
            thing.write(value)
        if changed and tell is not None:
            tell([name for *_, name in changed])


def fix_dice() -> None:
    """Set the random generators to fixed states, so that the next draws are the same in every process."""
    torch.default_generator.manual_seed(_FIXED)
    random.seed(_FIXED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(_FIXED)


def other_dice() -> None:
    """Advance the generators of Python and numpy, so that code that draws from them gets other numbers."""
    random.random()
    if numpy := sys.modules.get("numpy"):
        numpy.random.random()


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed
        return None


def _go(folder: str | None) -> None:
    if folder is not None:
        with suppress(OSError):
            os.chdir(folder)


def _put_environment(before: dict[str, str]) -> None:
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


def _put_filters(before: list[Any]) -> None:
    warnings.resetwarnings()  # in place; lists of warnings already shown become invalid
    warnings.filters.extend(before)  # type: ignore[attr-defined]


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _handlers_forgotten() -> Iterator[None]:
    """Outside the main thread, ignore calls that set a signal handler.

    A worker runs packs in another thread, where Python refuses to set a handler. In the main thread a handler is set,
    and `kept` restores the old one. So a module that can be imported in the main thread can be imported by a worker.
    """
    if _in_main_thread():
        yield
        return
    real = signal.signal
    vars(signal)["signal"] = lambda number, handler: signal.getsignal(number)
    try:
        yield
    finally:
        vars(signal)["signal"] = real


def _handlers() -> dict[str, Any]:
    if not _in_main_thread():
        return {}
    return {name: signal.getsignal(number) for name, number in _SIGNALS.items()}


def _put_handlers(before: dict[str, Any]) -> None:
    for name, handler in before.items():
        # `None` means that it was not set from Python
        if handler is not None and signal.getsignal(_SIGNALS[name]) != handler:
            signal.signal(_SIGNALS[name], handler)


def _numpy_state() -> Any:
    """Return the state of numpy's generator; arrays as bytes, which can be compared with `==`. None without numpy."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    name, keys, *rest = numpy.random.get_state()
    return name, keys.tobytes(), *rest


def _put_numpy_state(before: Any) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and before is not None:
        name, keys, *rest = before
        numpy.random.set_state((name, numpy.frombuffer(keys, dtype=numpy.uint32), *rest))


def _torch_state() -> bytes:
    return torch.get_rng_state().numpy().tobytes()


def _put_torch_state(before: bytes) -> None:
    torch.set_rng_state(torch.frombuffer(bytearray(before), dtype=torch.uint8))


def _deterministic() -> tuple[bool, bool, bool, bool]:
    cudnn = torch.backends.cudnn
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    return torch.are_deterministic_algorithms_enabled(), warn_only, cudnn.deterministic, cudnn.benchmark


def _put_deterministic(before: tuple[bool, bool, bool, bool]) -> None:
    if _deterministic()[:2] != before[:2]:  # only if needed, since the call imports many modules
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = before[2:]


def _put_device(before: torch.device) -> None:
    torch.set_default_device(None if before.type == "cpu" else before)


_QUICK = (
    _Thing("the current folder", _folder, _go),
    _Thing("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    _Thing("torch's default device", torch.get_default_device, _put_device),
    _Thing("torch's grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    _Thing("torch's number of threads", torch.get_num_threads, torch.set_num_threads),
    _Thing("torch's deterministic flags", _deterministic, _put_deterministic),
    _Thing(
        "torch's precision of fp32 products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    ),
)
_THINGS = (
    *_QUICK,
    _Thing("environment variables", lambda: dict(os.environ), _put_environment),
    _Thing("warnings filters", lambda: list(warnings.filters), _put_filters),
    _Thing("signal handlers", _handlers, _put_handlers),
    _Thing(DICE, _torch_state, _put_torch_state),
    _Thing("numpy's random numbers", _numpy_state, _put_numpy_state),
    _Thing("python's random numbers", random.getstate, random.setstate),
)

"""Whether this process compiles training steps (`--compile`), and why it stopped doing so. Imports no torch."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_asked = False
#: Why the compiler failed in this process; empty if it did not.
_failed = ""


@contextmanager
def compiling(asked: bool) -> Iterator[None]:
    """Within the block, training steps are compiled if `asked`, as far as the compiler has not failed before."""
    global _asked
    before, _asked = _asked, asked
    try:
        yield
    finally:
        _asked = before


def asked() -> bool:
    """Whether training steps are to be compiled, as `compiling` has set it."""
    return _asked


def failed() -> str:
    """Why the compiler failed in this process; empty if it did not. After a failure every step is eager."""
    return _failed


def give_up(reason: str) -> None:
    """From now on every training step of this process is eager; `reason` is one line that says why."""
    global _failed
    _failed = reason


def compiler() -> str:
    """The C++ compiler that torch.compile takes: the one that CXX names, else g++ (clang++ on macOS)."""
    return os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")


def missing(device: str) -> str:
    """What torch.compile lacks on this machine to compile for `device`; empty if nothing is known to be missing."""
    if shutil.which(compiler()) is None:
        return f"no C++ compiler is found ({compiler()}; CXX may name another)"
    if device.startswith("cuda") and find_spec("triton") is None:
        return "triton is not installed"
    return ""

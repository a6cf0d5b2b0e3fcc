"""Suite-wide settings: one thread a process, as runs on a CPU use one."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
# Tables are as wide as COLUMNS says, whatever the terminal is that the tests are started from.
os.environ.pop("COLUMNS", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """For tests/attack: how much of it, with which seed."""
    group = parser.getgroup("attack", "tests/attack: mutated input, kills and flipped bits")
    group.addoption("--attack", choices=("small", "full"), default="small", help="how much of it (default: small)")
    group.addoption("--seed", type=int, default=0, help="what is drawn is drawn from this seed (default: 0)")
    group.addoption("--input", type=int, help="only the input of this number of each kind, to repeat a failure")

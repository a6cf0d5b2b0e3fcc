"""How a command runs what it runs: each value checked once, in one line."""

import pytest

from mclab.config.options import RunOptions
from mclab.config.strict import ConfigError


@pytest.mark.parametrize("name", ["", "gpu", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "CUDA", "cuda:0 "])
def test_what_is_no_device(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^--device: .* is not auto, cpu, cuda or cuda:N$"):
        RunOptions(name)


@pytest.mark.parametrize("address", ["", "head", "head:8786", "tcp://head", "tcp://head:port", "tcp://:8786"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ConfigError, match=r"^--scheduler: .* is not an address; write tcp://HOST:PORT$"):
        RunOptions(scheduler=address)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "many", "", "0", "-3", "10000", 10_000])
def test_what_is_no_number(wrong: object) -> None:
    for name in ("workers", "pack"):
        with pytest.raises(ConfigError, match=rf"^--{name}: must be auto or a number from 1 to 9999, got "):
            RunOptions(**{name: wrong})  # type: ignore[arg-type]
    for name in ("threads", "max_failures"):
        option = name.replace("_", "-")
        with pytest.raises(ConfigError, match=rf"^--{option}: must be a number from 1 to 9999, got "):
            RunOptions(**{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("kernels", ["", "cuda", "Triton"])
def test_what_are_no_kernels(kernels: str) -> None:
    with pytest.raises(ConfigError, match=r"^--kernels: .* is not auto, torch or triton$"):
        RunOptions(kernels=kernels)


def test_when_to_compile() -> None:
    with pytest.raises(ConfigError, match=r"^--compile: 'yes' is not off, on or auto$"):
        RunOptions(compile="yes")
    with pytest.raises(ConfigError, match=r"^--compile on: .* leave out --kernels triton$"):
        RunOptions(compile="on", kernels="triton")


def test_numbers_may_be_words_and_auto_stays() -> None:
    assert RunOptions(workers="4", pack="16") == RunOptions(workers=4, pack=16)
    assert (RunOptions().workers, RunOptions().pack) == ("auto", "auto")


def test_how_many_may_fail() -> None:
    limits = [RunOptions(fail_fast=fast, max_failures=most).limit for fast in (False, True) for most in (None, 3)]
    assert limits == [None, 3, 1, 1]

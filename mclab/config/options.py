"""The options with which a command trains, and what training keeps. None of them is part of a run's id.

This module imports no config models: the command line needs the defaults before these are loaded.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from mclab.config.error import ConfigError, cut

AUTO = "auto"
#: Values of `--kernels`. auto: Triton kernels where mclab has them; torch: no Triton; triton: Triton wherever possible.
KERNELS = (AUTO, "torch", "triton")
#: Values of `--compile`. on: the training steps run through torch.compile; auto: where that is predicted to pay.
OFF, ON = "off", "on"
COMPILE = (OFF, ON, AUTO)
#: The upper limit for the numbers of workers, threads, failures, and runs in a pack.
_MOST = 9999


@dataclass(frozen=True)
class RunOptions:
    """The options of a command that trains, passed from the command line down to the workers.

    `workers` and `pack` are numbers or `auto`; a number may be given as text. `threads` is the number of CPU threads of
    each worker. `kernels` says which implementations may be used (mclab.kernels.dispatch), and `compile` whether
    training steps are compiled (mclab.train.compiled). Raises `ConfigError` for a value that is wrong on every machine;
    `mclab.runner.devices` checks the values against the present machine.
    """

    device: str = AUTO
    workers: int | str = AUTO
    scheduler: str | None = None
    pack: int | str = AUTO
    threads: int = 1
    fail_fast: bool = False
    max_failures: int | None = None
    retry_failed: bool = False
    extend: bool = False
    save_weights: bool = False
    kernels: str = AUTO
    compile: str = OFF

    def __post_init__(self) -> None:
        if not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", self.device):
            raise ConfigError(f"--device: {self.device!r} is not auto, cpu, cuda or cuda:N")
        if self.scheduler is not None and not re.fullmatch(r"\w+://\S+:\d+/?", self.scheduler):
            raise ConfigError(f"--scheduler: {self.scheduler!r} is not an address; write tcp://HOST:PORT")
        if self.kernels not in KERNELS:
            raise ConfigError(f"--kernels: {cut(self.kernels)!r} is not {', '.join(KERNELS[:-1])} or {KERNELS[-1]}")
        if self.compile not in COMPILE:
            raise ConfigError(f"--compile: {cut(self.compile)!r} is not {', '.join(COMPILE[:-1])} or {COMPILE[-1]}")
        if self.compile == ON and self.kernels == "triton":
            raise ConfigError("--compile on: a compiled step has torch's forms; leave out --kernels triton")
        for name in ("workers", "pack"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if value == AUTO else number(f"--{name}", value, "auto or "))
        number("--threads", self.threads)
        if self.max_failures is not None:
            number("--max-failures", self.max_failures)

    @property
    def limit(self) -> int | None:
        """How many runs may fail or diverge before the command stops; `None` for any number."""
        return 1 if self.fail_fast else self.max_failures


def number(option: str, value: int | str, other: str = "") -> int:
    """Return `value`, given for the option `option`, as an integer from 1 to `_MOST`.

    Raises `ConfigError` otherwise. `other` is put into the message before the numbers, for example `auto or `.
    """
    short = isinstance(value, str) and value.isdecimal() and len(value) <= len(str(_MOST))
    count = int(value) if short else value
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= _MOST:
        got = cut(value) if isinstance(value, str) else value
        raise ConfigError(f"{option}: must be {other}a number from 1 to {_MOST}, got {got!r}")
    return count


#: Train on the CPU, in this process alone.
ALONE = RunOptions(device="cpu", workers=1)


#: Pattern of a checkpoint's file name: run id and step.
_NAME = re.compile(r"([0-9a-f]{16})\.(\d+)\.safetensors")


@dataclass(frozen=True)
class Keep:
    """What training keeps in addition to its outcome. It is sent to the workers.

    `checkpoints` is the folder for checkpoints of runs in training; if it is `None`, no checkpoint is written or
    resumed. On a cluster the workers must see this folder under the same path. `weights` says whether `Outcome.weights`
    is filled.
    """

    checkpoints: Path | None = None
    weights: bool = False


def checkpoint(folder: Path, run: str, step: int) -> Path:
    """Return the path of the checkpoint in `folder` of the run with id `run` after `step` steps."""
    return folder / f"{run}.{step}.safetensors"


def checkpoints(folder: Path) -> dict[str, dict[int, Path]]:
    """Return {run id: {step: file}} for the checkpoints in `folder`, from the names of the files.

    The result is empty if there is no such folder. Raises `OSError`.
    """
    found: dict[str, dict[int, Path]] = defaultdict(dict)
    for path in folder.iterdir() if folder.is_dir() else ():
        if name := _NAME.fullmatch(path.name):
            found[name[1]][int(name[2])] = path
    return dict(found)

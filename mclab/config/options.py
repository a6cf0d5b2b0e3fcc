"""How a command trains, and what training keeps: device, workers, when to stop, checkpoints. No part of a run's id.

Imports none of the configs: the command line takes its defaults from here before anything is loaded.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from mclab.config.error import ConfigError, cut

AUTO = "auto"
#: Values of `--kernels`: Triton's where there are some, never, or wherever possible.
KERNELS = (AUTO, "torch", "triton")
#: The most workers, threads, failures, and runs in a pack.
_MOST = 9999


@dataclass(frozen=True)
class RunOptions:
    """The options of a command that trains, from the command line down to the workers.

    `workers` and `pack` are numbers or `auto`; a number may come as text. `threads` are those of each worker on CPU.
    `kernels` says which implementations may compute (mclab.kernels.dispatch). Raises `ConfigError` for a value that is
    wrong on every machine; `mclab.runner.devices` looks at this one.
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

    def __post_init__(self) -> None:
        if not re.fullmatch(r"auto|cpu|cuda(:\d{1,4})?", self.device):
            raise ConfigError(f"--device: {self.device!r} is not auto, cpu, cuda or cuda:N")
        if self.scheduler is not None and not re.fullmatch(r"\w+://\S+:\d+/?", self.scheduler):
            raise ConfigError(f"--scheduler: {self.scheduler!r} is no address; write tcp://HOST:PORT")
        if self.kernels not in KERNELS:
            raise ConfigError(f"--kernels: {cut(self.kernels)!r} is not {', '.join(KERNELS[:-1])} or {KERNELS[-1]}")
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
    """The value of an option that counts something. Raises `ConfigError`, which names what else it may be."""
    short = isinstance(value, str) and value.isdecimal() and len(value) <= len(str(_MOST))
    count = int(value) if short else value
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= _MOST:
        got = cut(value) if isinstance(value, str) else value
        raise ConfigError(f"{option}: needs {other}a number from 1 to {_MOST}, got {got!r}")
    return count


#: One process on the CPU: this one.
ALONE = RunOptions(device="cpu", workers=1)


#: Name of a checkpoint: run id and step.
_NAME = re.compile(r"([0-9a-f]{16})\.(\d+)\.safetensors")


@dataclass(frozen=True)
class Keep:
    """What training keeps apart from its outcome; sent to the workers.

    `checkpoints` is the folder for the state of runs in training (`None`: nothing is kept, nothing is resumed). On a
    cluster it must be a folder that the workers see under the same path. `weights` asks for `Outcome.weights`.
    """

    checkpoints: Path | None = None
    weights: bool = False


def checkpoint(folder: Path, run: str, step: int) -> Path:
    """The file with the state of the run with this id after so many steps."""
    return folder / f"{run}.{step}.safetensors"


def checkpoints(folder: Path) -> dict[str, dict[int, Path]]:
    """Run id -> step -> file, by the files' names alone; empty where there is no folder. Raises `OSError`."""
    found: dict[str, dict[int, Path]] = defaultdict(dict)
    for path in folder.iterdir() if folder.is_dir() else ():
        if name := _NAME.fullmatch(path.name):
            found[name[1]][int(name[2])] = path
    return dict(found)

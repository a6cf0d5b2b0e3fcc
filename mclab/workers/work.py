"""Train one pack in a worker: set the number of threads on CPU, and return a `Failure` instead of raising."""

import gc
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mclab.config.options import ON, Keep, RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.kernels.compile_mode import compiling
from mclab.kernels.dispatch import using
from mclab.passwords import without_passwords

Pack = tuple[RunConfig, ...]
Progress = Callable[[int, int], None]
#: A function that is called with (pack, step, steps) to report progress, and with (pack, 0, 0) when the pack starts.
#: The call may come from another thread.
PackProgress = Callable[[Pack, int, int], None]
#: A function that is called with each line that the user should see.
Say = Callable[[str], None]


class Train(Protocol):
    """A function that trains runs of one shape together and returns one outcome per run, in the same order."""

    def __call__(
        self, runs: Sequence[RunConfig], *, device: str, progress: Progress | None = None, keep: Keep | None = None
    ) -> list[Outcome]:
        """Train `runs` on `device`. `progress` is called with (step, steps).

        `keep` says where checkpoints are stored, and whether weights are stored. Raises any error of training, for
        example when the memory is full.
        """
        ...


@dataclass(frozen=True)
class Failure:
    """The reason why a pack has no outcomes: the memory was full (`oom`), or there was an error.

    `error` is one line.
    """

    status: Literal["oom", "failed"]
    error: str


Result = list[Outcome] | Failure


def work(
    pack: Pack,
    options: RunOptions,
    train: Train | None = None,
    progress: Progress | None = None,
    keep: Keep | None = None,
) -> Result:
    """Train one pack. Every exception becomes a `Failure`, which can be sent between processes and holds no tensors.

    `progress` is called with (0, 0) when everything is loaded and the pack starts.
    """
    try:
        train = train or _train_pack()
        if progress is not None:
            progress(0, 0)
        with _threads(options), using(options.kernels), compiling(options.compile == ON):
            return train(pack, device=options.device, progress=progress, keep=keep)
    except (Exception, SystemExit) as error:  # a user's module may call sys.exit
        failure = Failure("oom" if _is_oom(error) else "failed", _one_line(error))
    _free_memory()
    return failure


def _train_pack() -> Train:
    from mclab.train import train_pack

    return train_pack


@contextmanager
def _threads(options: RunOptions) -> Iterator[None]:
    """Within the block, let torch use `options.threads` threads on CPU, in every kind of worker.

    This is necessary because sums depend on the number of threads.
    """
    torch = sys.modules.get("torch") if options.device == "cpu" else None
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(options.threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _is_oom(error: BaseException) -> bool:
    """Return whether the error means that the memory was full.

    torch's error class is compared by name, since torch may not be loaded. Its CPU allocator raises a plain
    RuntimeError.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"OutOfMemoryError", "MemoryError"}) or "can't allocate memory" in str(error)


def _one_line(error: BaseException) -> str:
    text = without_passwords(" ".join(str(error).split()))
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}:{last.lineno} in {last.name})"


def _free_memory() -> None:
    """Free the memory of a failed pack, since reference cycles and torch's cache still hold tensors."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()

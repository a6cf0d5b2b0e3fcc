"""What a worker does with a pack: so many threads on CPU, and a plain reason in place of an exception."""

import gc
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mclab.config.options import Keep, RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.kernels.dispatch import using
from mclab.passwords import without_passwords

Pack = tuple[RunConfig, ...]
Progress = Callable[[int, int], None]
#: Hears how far which pack is: (pack, step, steps), with (pack, 0, 0) when it starts. Perhaps from another thread.
PackProgress = Callable[[Pack, int, int], None]
#: Hears what the user should know, a line at a time.
Say = Callable[[str], None]


class Train(Protocol):
    """Trains runs of one shape together; one outcome per run, in their order. `progress` gets (step, steps).

    `keep` says where checkpoints go, and whether weights are asked for.
    """

    def __call__(
        self, runs: Sequence[RunConfig], *, device: str, progress: Progress | None = None, keep: Keep | None = None
    ) -> list[Outcome]:
        """Raises whatever goes wrong, running out of memory included."""
        ...


@dataclass(frozen=True)
class Failure:
    """Why a pack has no outcomes: its memory was not enough, or an error, in one line."""

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
    """Train one pack. Every exception becomes a `Failure`: it travels between processes and holds no tensors.

    `progress` hears (0, 0) when all is loaded and the pack starts.
    """
    try:
        train = train or _train_pack()
        if progress is not None:
            progress(0, 0)
        with _threads(options), using(options.kernels):
            return train(pack, device=options.device, progress=progress, keep=keep)
    except (Exception, SystemExit) as error:  # a user's own module may end itself
        failure = Failure("oom" if _is_oom(error) else "failed", _one_line(error))
    _free_memory()
    return failure


def _train_pack() -> Train:
    from mclab.train import train_pack

    return train_pack


@contextmanager
def _threads(options: RunOptions) -> Iterator[None]:
    """Sums depend on the number of threads: on CPU every worker of every kind uses as many as the command says."""
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
    """Torch's own class by name, since torch may not be loaded; its CPU allocator raises a bare RuntimeError."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"OutOfMemoryError", "MemoryError"}) or "can't allocate memory" in str(error)


def _one_line(error: BaseException) -> str:
    text = without_passwords(" ".join(str(error).split()))
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}:{last.lineno} in {last.name})"


def _free_memory() -> None:
    """The failed pack's tensors hang in cycles and in torch's cache; the next pack needs their room."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()

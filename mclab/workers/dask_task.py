"""The task of a Dask worker: train one pack at a time, report progress, and stop if no one waits for the result."""

# mypy: allow-untyped-calls
import threading
from contextlib import suppress
from functools import partial

from distributed import Status, get_worker
from distributed.utils import sync

from mclab.config.options import Keep, RunOptions
from mclab.workers.work import Pack, Result, Train, work

#: The value that is sent instead of a step when a worker begins a pack.
TAKEN = -1
#: A lock with which one pack trains at a time: a Dask worker with several threads gets several packs, but torch's
#: number of threads is one for the whole process.
_ALONE = threading.Lock()
_ENDING = (Status.closing, Status.closed, Status.failed)


def train_here(
    pack: Pack, number: int, topic: str, options: RunOptions, train: Train | None, keep: Keep | None
) -> Result:
    """Call `work` in a Dask worker. Send (number, `TAKEN`, 0) to `topic` at the start, then (number, step, steps)."""
    with _ALONE:
        worker = get_worker()
        # Wait for the scheduler's answer: if the pack kills its worker at once, the scheduler must know that the pack
        # had begun.
        with suppress(OSError):
            sync(worker.loop, worker.scheduler.log_event, topic=topic, msg=(number, TAKEN, 0))
        return work(pack, options, train, partial(_tell, topic, number), keep)


def _tell(topic: str, number: int, step: int, steps: int) -> None:
    """Report the progress of the pack. Raises `RuntimeError`, which ends training, if no one waits for its result."""
    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    if worker.status in _ENDING or task is None or task.state == "cancelled":
        raise RuntimeError("no one waits for this pack")
    worker.log_event(topic, (number, step, steps))

"""What a Dask worker runs: one pack at a time, which reports its progress and stops when no one waits for it."""

# mypy: allow-untyped-calls
import threading
from contextlib import suppress
from functools import partial

from distributed import Status, get_worker
from distributed.utils import sync

from mclab.config.options import Keep, RunOptions
from mclab.workers.work import Pack, Result, Train, work

#: In place of a step: a worker has taken the pack up.
TAKEN = -1
#: A worker with several threads is handed several packs; torch's number of threads is the process's.
_ALONE = threading.Lock()
_ENDING = (Status.closing, Status.closed, Status.failed)


def train_here(
    pack: Pack, number: int, topic: str, options: RunOptions, train: Train | None, keep: Keep | None
) -> Result:
    """`work` in a worker. Tells `topic` (number, `TAKEN`, 0) as it begins, then (number, step, steps)."""
    with _ALONE:
        worker = get_worker()
        # The scheduler's answer is waited for: a pack that kills its worker at once must be known to have begun.
        with suppress(OSError):
            sync(worker.loop, worker.scheduler.log_event, topic=topic, msg=(number, TAKEN, 0))
        return work(pack, options, train, partial(_tell, topic, number), keep)


def _tell(topic: str, number: int, step: int, steps: int) -> None:
    """Report how far the pack is. Raises `RuntimeError`, which ends the training, where no one takes its result."""
    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    if worker.status in _ENDING or task is None or task.state == "cancelled":
        raise RuntimeError("no one waits for this pack")
    worker.log_event(topic, (number, step, steps))

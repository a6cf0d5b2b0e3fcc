"""Run packs in this process, in local worker processes, or on a Dask cluster. Only this package imports dask."""

from mclab.workers.pool import Pool, device_at, open_pool, worker_count
from mclab.workers.work import Failure, Pack, PackProgress, Progress, Result, Train

__all__ = [
    "Failure",
    "Pack",
    "PackProgress",
    "Pool",
    "Progress",
    "Result",
    "Train",
    "device_at",
    "open_pool",
    "worker_count",
]

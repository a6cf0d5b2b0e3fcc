"""Read and write a run folder: `records/`, `curves/`, `grid.yaml`, `plan.json`, `lock`.

Only one process at a time writes to it. A record is written whole or not at all.

`Store(path)` opens the folder for writing and holds its lock. `Records(path)` only reads: it takes no lock and creates
nothing.

    folder.py   `Records` and `Store`
    record.py   a record and its curve as JSON and back; checks.py: which values the figures of a record may have
    frame.py    stored runs as a polars frame; find.py: find a run by the first digits of its id
    lock.py     the lock for one writer, and the check that no files of other programs are overwritten
    crashes.py  which runs were training when the process died
    files.py    write files whole or not at all, JSON bytes, check paths that users give
"""

from mclab.store.files import StoreError
from mclab.store.folder import SPACE, Records, Store

__all__ = ["SPACE", "Records", "Store", "StoreError"]

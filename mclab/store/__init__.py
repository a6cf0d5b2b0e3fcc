"""The run folder: `records/`, `curves/`, `grid.yaml`, `plan.json`, `lock`. One writer; a record is whole or absent.

`Store(path)` opens the folder for writing and holds its lock; `Records(path)` reads, takes no lock, creates nothing.

    folder.py   both of them
    record.py   a record and its curve as JSON and back; checks.py: what its figures may be
    frame.py    stored runs as a polars frame; find.py: a run by the first digits of its id
    lock.py     one writer, and files of others are never written over
    crashes.py  what trained when the process died
    files.py    whole writes, JSON bytes, paths that users give
"""

from mclab.store.files import StoreError
from mclab.store.folder import SPACE, Records, Store

__all__ = ["SPACE", "Records", "Store", "StoreError"]

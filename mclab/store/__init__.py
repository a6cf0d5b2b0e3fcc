"""The run folder: `records/`, `curves/`, `grid.yaml`, `plan.json`, `lock`. One writer; a record is whole or absent.

`Store(path)` opens the folder for writing and holds its lock; `Records(path)` reads, takes no lock, creates nothing.
"""

from mclab.store.files import StoreError
from mclab.store.folder import SPACE, Records, Store

__all__ = ["SPACE", "Records", "Store", "StoreError"]

"""Write frames as csv and parquet. Each file is replaced in one step; the same records give the same bytes."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from mclab.atomic_files import write_whole
from mclab.report.text import is_number, plain, value_text

#: The name, the type (`None` if it follows from the values) and the values of a column.
Column = tuple[str, Any, Sequence[Any]]


def series(name: str, dtype: Any, values: Sequence[Any]) -> pl.Series:
    """Return a column of type `dtype`, with null for `None`.

    Without `dtype`, the type follows from the values that are not `None`: boolean if all are booleans, integer or
    float if all are numbers, else text.
    """
    if dtype is not None:
        return pl.Series(name, values, dtype=dtype)
    values = [plain(value) for value in values]
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return pl.Series(name, values, dtype=pl.Boolean)
    if known and all(map(is_number, known)):
        whole = all(isinstance(value, int) for value in known)
        return pl.Series(name, values, dtype=pl.Int64 if whole else pl.Float64)
    return pl.Series(name, [None if value is None else value_text(value) for value in values], dtype=pl.String)


def as_csv(frame: pl.DataFrame) -> bytes:
    """Return the frame as csv in UTF-8.

    Floats are in the shortest form that reads back exactly; null is an empty field.
    """
    return frame.write_csv().encode()


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Return the frame as parquet. The file does not hold the time of writing."""
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write `files` (name -> content) into `folder`, which is created if it is missing, and return their paths.

    Each file is replaced in one step; if that fails, the old file remains. Raises `OSError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)
    return [folder / name for name in files]

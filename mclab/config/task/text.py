"""Bytes of text files: which files, their hash, and how each is split into train, valid and test."""

import hashlib
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from mclab.config.task.base import MANY, TaskConfig

#: The largest corpus in bytes: the whole corpus is held in memory, and offsets are drawn below 2**31.
MOST_BYTES = 2**28
#: The longest sequence in bytes.
LONGEST = 2**20
#: The part of every file that each split has, in tenths: the first eight are train, one is valid, one is test.
TENTHS = {"train": (0, 8), "valid": (8, 9), "test": (9, 10)}


class TextTask(TaskConfig):
    """Language modelling of bytes: the input is a piece of a file, and the target of each byte is the next byte.

    The corpus is the user's files or, by default, the modules of the Python standard library. These modules differ
    between versions of Python, so the hash of the bytes is a config key. It is computed when a run is planned, and is
    part of the run's id. A corpus with another hash is refused when the run is trained or inspected.
    """

    name: Literal["text"] = "text"
    vocab: int = Field(256, ge=256, le=256, description="tokens: the 256 bytes")
    length: int = Field(128, ge=2, le=LONGEST, description="number of bytes in a sequence")
    corpus: str | None = Field(
        None, description="a file, or a folder of files; null: the modules of Python's standard library"
    )
    sha256: str = Field(
        "", pattern="^([0-9a-f]{64})?$", description="hash of the corpus, filled in when a run is planned"
    )

    @model_validator(mode="before")
    @classmethod
    def _hashed(cls, data: Any) -> Any:
        """Return `data` with `sha256` from the files. A stored run has the hash already and does not need its files."""
        if not isinstance(data, dict) or data.get("sha256") or not isinstance(data.get("corpus"), str | None):
            return data
        corpus, length = data.get("corpus"), data.get("length", cls.model_fields["length"].default)
        if isinstance(length, int) and length <= LONGEST:  # a longer one is refused later, by the bound of the field
            _check_size(corpus, length)
        return {**data, "sha256": corpus_hash(corpus)}

    def space(self) -> int:
        """Return `MANY`, since sequences are not counted.

        The splits are different parts of the files, and have no text in common unless the files repeat it.
        """
        return MANY

    @property
    def keys(self) -> int:
        """0, since no answer is a value that belongs to a key in the sequence."""
        return 0

    @property
    def questions(self) -> int:
        """The number of scored answers in a sequence: one for every byte, namely the next byte."""
        return self.length


def corpus_hash(corpus: str | None) -> str:
    """Return the SHA-256 of all files, where the length of each precedes its bytes.

    Raises `ValueError` as `files` does.
    """
    digest = hashlib.sha256()
    for content in files(corpus):
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def part(corpus: str | None, split: str) -> bytes:
    """Return the bytes of a split: its tenths of every file, joined. Raises `ValueError` as `files` does."""
    first, last = TENTHS[split]
    return b"".join(each[len(each) * first // 10 : len(each) * last // 10] for each in files(corpus))


@lru_cache(maxsize=4)
def files(corpus: str | None) -> tuple[bytes, ...]:
    """Return the contents of the corpus's files, sorted by path.

    Raises `ValueError` if there are none, or too many bytes.
    """
    paths = _modules() if corpus is None else _below(corpus)
    try:
        if (size := sum(path.stat().st_size for path in paths)) > MOST_BYTES:
            raise ValueError(f"corpus: {corpus} has {size:,} bytes, but at most {MOST_BYTES:,} are allowed")
        found = tuple(path.read_bytes() for path in paths)
    except OSError as error:
        raise ValueError(f"corpus: {corpus} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if not any(found):
        raise ValueError(f"corpus: {corpus or 'the standard library'} contains no text")
    return found


def _modules() -> list[Path]:
    """Return the standard library's single-file modules, without those that are made for one machine."""
    folder = Path(sysconfig.get_path("stdlib"))
    return [path for path in sorted(folder.glob("*.py")) if path.stem in sys.stdlib_module_names - {"_sysconfigdata"}]


def _below(corpus: str) -> list[Path]:
    """Return the file `corpus`, or all files in the folder `corpus` and its subfolders, without hidden ones."""
    root = Path(corpus)
    if not root.exists():
        raise ValueError(f"corpus: there is no file or folder {corpus}")
    if not root.is_dir():
        return [root]
    known = (path for path in sorted(root.rglob("*")) if path.is_file())
    return [path for path in known if not any(name.startswith(".") for name in path.relative_to(root).parts)]


def _check_size(corpus: str | None, length: int) -> None:
    """Raise `ValueError` unless every split has at least `length + 1` bytes: a sequence and the byte after it."""
    least = min(len(part(corpus, split)) for split in TENTHS)
    if least <= length:
        whole = sum(map(len, files(corpus)))
        raise ValueError(
            f"corpus: {corpus or 'the standard library'} has {whole:,} bytes, and its smallest part has {least:,}, "
            f"but length {length} needs {length + 1:,}; take more text or a smaller length"
        )

"""What a place for studies is: a journal file or a database."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from optuna.storages import BaseStorage

Say = Callable[[str], None]


class Place(Protocol):
    """Where studies are kept."""

    @property
    def told(self) -> str:
        """Where that is, to be read."""

    def open(self) -> BaseStorage:
        """Optuna's storage."""

    def guard(self, what: str) -> AbstractContextManager[None]:
        """One process at a time."""

    def close(self) -> None:
        """Let go of it."""

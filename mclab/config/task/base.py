"""What every task's config offers, whatever its keys."""

from abc import abstractmethod
from typing import Self

from mclab.config.strict import Strict

#: No rule asks whether a space is larger than this, so counting stops here.
MANY = 2**64


def arrangements(things: int, chosen: int) -> int:
    """`math.perm`, at most `MANY`: of half a million things it has millions of digits."""
    found = 1
    for number in range(things, max(things - chosen, -1), -1):
        found *= number
        if found >= MANY:
            return MANY if chosen <= things else 0
    return found


class TaskConfig(Strict):
    """Base of the tasks' configs. `name`, `vocab` and `length` are fields of every one of them."""

    name: str
    vocab: int
    length: int

    @property
    @abstractmethod
    def slices(self) -> tuple[str, ...]:
        """The values of the difficulty axis, as they stand in records and column names: `pairs=16`, `depth=50`."""

    @abstractmethod
    def only(self, slice_name: str) -> Self:
        """This task with one slice alone. Raises `KeyError` for a name that `slices` does not hold."""

    @abstractmethod
    def space(self) -> int:
        """How many different sequences the smallest slice holds, filler left out."""

    def canonical(self) -> Self:
        """The one config that stands for every config that makes the same sequences."""
        return self

    @property
    @abstractmethod
    def keys(self) -> int:
        """Different keys that a sequence holds, at most: with one alone there is nothing to choose between."""

    @property
    def value_tokens(self) -> int:
        """Tokens of one value; an answer may be several values."""
        return self.answer_tokens

    @property
    def answer_tokens(self) -> int:
        """Scored positions, side by side in a batch, that are right or wrong together: the tokens of one answer."""
        return 1

    @property
    def questions(self) -> int:
        """Answers that are scored in a sequence, of its slice with the fewest."""
        return 1

    @property
    def oddities(self) -> list[str]:
        """Harmless settings that may not have been meant, one line each."""
        return []

    def exam(self) -> Self:
        """The task as a test sees it: without what changes the training alone."""
        return self.canonical()

    def lesson(self) -> Self:
        """The task as training sees it: without what changes tests alone."""
        return self.canonical()

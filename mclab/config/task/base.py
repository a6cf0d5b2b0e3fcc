"""The interface of the config of every task."""

from abc import abstractmethod
from typing import Self

from mclab.config.strict import Strict

#: Counting of sequences stops here, since no rule needs a larger number.
MANY = 2**64


def arrangements(things: int, chosen: int) -> int:
    """`math.perm(things, chosen)`, but at most `MANY`: for half a million things it would have millions of digits."""
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
    def slices(self) -> tuple[str, ...]:
        """The names of the slices, as in records and column names: `pairs=16`. By default one slice, the length."""
        return (f"length={self.length}",)

    def only(self, slice_name: str) -> Self:
        """This task with one slice alone. Raises `KeyError` for a name that `slices` does not hold."""
        if (slice_name,) != self.slices:
            raise KeyError(slice_name)
        return self

    @abstractmethod
    def space(self) -> int:
        """Return how many different sequences the smallest slice holds, filler left out."""

    def canonical(self) -> Self:
        """Return the canonical form of this task; it is the same for all configs that make the same sequences."""
        return self

    @property
    @abstractmethod
    def keys(self) -> int:
        """The largest number of different keys in a sequence whose values could be copied; 0 if none or unknown."""

    @property
    def value_tokens(self) -> int:
        """Tokens of one value; an answer may be several values."""
        return self.answer_tokens

    @property
    def answer_tokens(self) -> int:
        """Consecutive scored positions of a batch that are right or wrong together: the tokens of one answer."""
        return 1

    @property
    def questions(self) -> int:
        """The number of answers that are scored in a sequence, in the slice with the fewest."""
        return 1

    @property
    def warnings(self) -> list[str]:
        """Harmless settings that may not have been meant, one line each."""
        return []

    def as_tested(self) -> Self:
        """Return the task as a test sees it: without what changes only the training."""
        return self.canonical()

    def as_trained(self) -> Self:
        """Return the task as training sees it: without what changes only the tests."""
        return self.canonical()

"""The interface of the config of every task."""

from abc import abstractmethod
from typing import Self

from mclab.config.strict import Strict

#: The largest count of sequences; no rule needs a larger number.
MANY = 2**64


def arrangements(things: int, chosen: int) -> int:
    """Return `math.perm(things, chosen)`, at most `MANY`: for half a million things it has millions of digits."""
    found = 1
    for number in range(things, max(things - chosen, -1), -1):
        found *= number
        if found >= MANY:
            return MANY if chosen <= things else 0
    return found


class TaskConfig(Strict):
    """The base class of the configs of tasks. All of them have `name`, `vocab` and `length`."""

    name: str
    vocab: int
    length: int

    @property
    def slices(self) -> tuple[str, ...]:
        """The names of the slices, as in records and column names: `pairs=16`. By default one slice, the length."""
        return (f"length={self.length}",)

    def only(self, slice_name: str) -> Self:
        """Return this task with one slice alone. Raises `KeyError` for a name that is not in `slices`."""
        if (slice_name,) != self.slices:
            raise KeyError(slice_name)
        return self

    @abstractmethod
    def space(self) -> int:
        """Return how many different sequences the smallest slice has. Different filler alone makes no difference."""

    def canonical(self) -> Self:
        """Return the canonical form of this task, which is equal for all configs that make the same sequences."""
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
        """The number of consecutive scored positions of one answer, which is right only if all of them are."""
        return 1

    @property
    def questions(self) -> int:
        """The number of scored answers in a sequence, for the slice with the fewest."""
        return 1

    @property
    def warnings(self) -> list[str]:
        """One line for each harmless setting that may not have been meant."""
        return []

    def as_tested(self) -> Self:
        """Return the task for tests: keys that change only the training are fixed."""
        return self.canonical()

    def as_trained(self) -> Self:
        """Return the task for training: keys that change only the tests are fixed."""
        return self.canonical()

"""How long the sequences of a run are: bounds that lie in no key's own range."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mclab.config.run import RunConfig


@dataclass(frozen=True)
class Lengths:
    """Tokens: of the task itself, of the longest sequences in training, of the shortest and the longest of all."""

    own: int
    trained: int
    shortest: int
    longest: int

    @classmethod
    def of(cls, run: "RunConfig") -> "Lengths":
        """Those of training, validation and test."""
        trained = [part.task.length for part in run.mix]
        every = [run.task.length, *trained, *(exam.task.length for exam in run.exams)]
        return cls(run.task.length, max(trained), min(every), max(every))

    @property
    def most(self) -> str:
        """The longest in words: `task.length 64`."""
        return (
            f"task.length {self.own}" if self.longest == self.own else f"the longest sequences' {self.longest} tokens"
        )

    @property
    def training(self) -> str:
        """The longest of training in words."""
        return f"training's {self.trained} tokens"

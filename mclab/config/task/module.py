"""A task of the user's own: where it is, what it is called with, and the sizes that models need to know."""

from typing import Any, Literal

from pydantic import Field

from mclab.config.fields import Args, Path, keywords
from mclab.config.task.base import MANY, TaskConfig


class ModuleTask(TaskConfig):
    """A function or class of the user's own that makes one sequence of a generator, or many of a stream of keys.

    docs/extending.md says what it is given and what it gives.
    """

    name: Literal["module"] = "module"
    vocab: int = Field(64, ge=2, le=2**20, description="tokens: 0 to vocab - 1")
    length: int = Field(64, ge=1, le=2**16, description="tokens in a sequence")
    module: Path = Field("", description="dotted path of a function or class, e.g. my_tasks.copy")
    args: Args = Field((), description="its arguments; vocab and length are given where it takes them")
    version: int = Field(
        1, ge=1, le=10**9, description="its `version`, filled in by the plan: the run id cannot see code"
    )

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments as values."""
        return keywords(self.args)

    def space(self) -> int:
        """Not known: the hash of a sequence says which split may hold it, and a task that is too small is refused when
        it runs out of sequences."""
        return MANY

    @property
    def keys(self) -> int:
        """Not known; predictors that copy a value are left out."""
        return 0

"""The user's own task: its dotted path, its arguments, and the sizes that models need."""

from typing import Any, Literal

from pydantic import Field

from mclab.config.fields import Args, Path, keywords
from mclab.config.task.base import MANY, TaskConfig


class ModuleTask(TaskConfig):
    """The user's own function or class, which makes one sequence from a random generator, or many from random keys.

    docs/extending.md describes its arguments and its result.
    """

    name: Literal["module"] = "module"
    vocab: int = Field(64, ge=2, le=2**20, description="tokens: 0 to vocab - 1")
    length: int = Field(64, ge=1, le=2**16, description="number of tokens in a sequence")
    module: Path = Field("", description="dotted path of a function or class, e.g. my_tasks.copy")
    args: Args = Field(
        (), description="arguments of the function or class; vocab and length are added if it takes them"
    )
    version: int = Field(
        1,
        ge=1,
        le=10**9,
        description="the task's `version`, filled in by the plan, because the run id does not depend on the code",
    )

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments as values."""
        return keywords(self.args)

    def space(self) -> int:
        """Return `MANY`, since the number of sequences is not known.

        The hash of a sequence decides which split may have it. A task with too few sequences fails when it runs out of
        them.
        """
        return MANY

    @property
    def keys(self) -> int:
        """0, since the number is not known. Predictors that copy a value are left out for this task."""
        return 0

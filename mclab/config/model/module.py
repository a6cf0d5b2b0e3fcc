"""The user's own torch module as a mixer: its dotted path and its arguments."""

from typing import Any, Literal

from pydantic import Field

from mclab.config.fields import Args, Path, keywords
from mclab.config.model.base import Around, MixerConfig


class ModuleMixer(MixerConfig):
    """Any torch module from [B, T, D] to [B, T, D]; `mclab.conform` checks the properties that it must have.

    The run's id depends on the path, the arguments and the version, but not on the code of the module.
    """

    name: Literal["module"] = "module"
    module: Path = Field(
        "", description="dotted path of a torch module's class, e.g. my_mixers.Mixer, from the current directory"
    )
    args: Args = Field(
        (), description="arguments of the class; dim (or d_model) and length are added if the class takes them"
    )
    version: int = Field(
        1,
        ge=1,
        le=10**9,
        description="raise it when the module's code changes, because the run id does not depend on the code",
    )

    @property
    def model_keys(self) -> frozenset[str]:
        return frozenset()

    def parameters(self, model: Around, length: int) -> None:
        """Return `None`: the number of parameters is not known without the module's code."""

    def state(self, model: Around, length: int) -> tuple[None, None]:
        """Return (None, None): the size of the state is not known without the module's code."""
        return None, None

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments as values: a text that is valid JSON is parsed, any other stays text."""
        return keywords(self.args)

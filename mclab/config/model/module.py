"""A user's own torch module as a mixer: where it is, and what it is called with."""

from typing import Any, Literal

from pydantic import Field

from mclab.config.fields import Args, Path, keywords
from mclab.config.model.base import Around, MixerConfig


class ModuleMixer(MixerConfig):
    """Any torch module [B, T, D] to [B, T, D]; `mclab.conform` checks what it must fulfil.

    The run's id holds path, arguments and version. It cannot see the code behind them.
    """

    name: Literal["module"] = "module"
    module: Path = Field(
        "", description="dotted path of a torch module's class, e.g. my_mixers.Mixer, from the current directory"
    )
    args: Args = Field((), description="its arguments; dim (or d_model) and length are given where it takes them")
    version: int = Field(
        1, ge=1, le=10**9, description="raise it when the module's code changes: the run id cannot see code"
    )

    @property
    def model_keys(self) -> frozenset[str]:
        return frozenset()

    def parameters(self, model: Around, length: int) -> None:
        """Only the module itself can count them."""

    def state(self, model: Around, length: int) -> tuple[None, None]:
        """Only the module itself knows."""
        return None, None

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments as values: JSON where it is JSON, else text."""
        return keywords(self.args)

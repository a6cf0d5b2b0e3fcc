"""A user's own torch module as a mixer: where it is, and what it is called with."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from mclab.config.model.base import Around, MixerConfig
from mclab.config.strict import as_texts, refuse_large


def _dotted(value: str) -> str:
    """The empty text stands for a key that was not given: the rules between keys refuse it."""
    parts = value.split(".")
    if value and (len(parts) < 2 or not all(part.isidentifier() for part in parts)):
        raise ValueError("needs the dotted path of a class or function, e.g. my_mixers.Mixer")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_args(value: Any) -> Any:
    """A mapping of names to JSON values as texts. Inner mappings are sorted: their order carries no meaning."""
    if value is None:
        return ()
    if isinstance(value, list | tuple) and all(isinstance(text, str) and "=" in text for text in value):
        value = {name: _json(text) for name, _, text in (each.partition("=") for each in value)}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key.isidentifier() for key in value):
        raise ValueError("needs a mapping of the module's arguments, e.g. {width: 16}")
    refuse_large(value)
    try:
        return as_texts(json.loads(json.dumps(dict(value), sort_keys=True, allow_nan=False)))
    except (TypeError, ValueError):
        raise ValueError("needs numbers, texts, true, false, null, lists or mappings of them") from None


#: A mapping of arguments; held as one `name=value` text each, sorted.
Args = Annotated[tuple[str, ...], BeforeValidator(_as_args), WithJsonSchema({"type": "object"})]


class ModuleMixer(MixerConfig):
    """Any torch module [B, T, D] to [B, T, D]; `mclab.conform` says what it must keep to.

    The run's id holds path, arguments and version. It cannot see the code behind them.
    """

    name: Literal["module"] = "module"
    module: Annotated[str, AfterValidator(_dotted)] = Field(
        "", description="dotted path of a torch module's class, e.g. my_mixers.Mixer, from the current directory"
    )
    args: Args = Field((), description="its arguments; dim (or d_model) and length are given where it takes them")
    version: int = Field(
        1, ge=1, le=10**9, description="raise it when the module's code changes: the run id cannot see code"
    )

    @property
    def obeys(self) -> frozenset[str]:
        return frozenset()

    def parameters(self, model: Around, length: int) -> None:
        """Only the module itself can count them."""

    def state(self, model: Around, length: int) -> tuple[None, None]:
        """Only the module itself knows."""
        return None, None

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments as values: JSON where it is JSON, else a word."""
        return dict(map(_argument, self.args))


def _argument(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value

"""The base of all config models: frozen, no unknown keys, no silent conversions, no NaN."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core.core_schema import CoreSchema, no_info_after_validator_function

from mclab.config.error import ConfigError as ConfigError
from mclab.config.error import cut as cut

Scalar = bool | int | float | str | None
Leaf = Scalar | tuple[Scalar, ...]

#: The largest value of a key that takes any positive number; its products with usual numbers fit into fp32.
LARGEST = 1e30
#: Integers of at least this size do not fit into a column of a table, and are refused for every key.
TOO_LARGE = 2**63

#: Texts that a JSON parser would turn into other values.
_JSON_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity"})


class Strict(BaseModel):
    """The base class of every config model. `True` is no integer, `"3"` is no number, an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _as_distinct_sorted(value: Any) -> Any:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise ValueError("must have at least one value")
    if any(isinstance(v, bool) or not isinstance(v, int) for v in values):
        raise ValueError("must be a whole number or a list of them")
    twice = sorted(v for v, number in Counter(values).items() if number > 1)
    if twice:
        raise ValueError(f"{twice[0]} is listed twice")
    return tuple(sorted(values))


#: One integer or a list of different integers. `4` and `[4]` mean the same, and the order of a list has no meaning.
IntMix = Annotated[tuple[int, ...], BeforeValidator(_as_distinct_sorted)]


@dataclass(frozen=True)
class Each:
    """The bounds of every number in an `IntMix`. They are checked and put into the JSON schema."""

    ge: int
    le: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler(core)
        return {**found, "items": {**found["items"], "minimum": self.ge, "maximum": self.le}}

    def _checked(self, values: tuple[int, ...]) -> tuple[int, ...]:
        if values[0] < self.ge or values[-1] > self.le:
            raise ValueError(f"must be a whole number from {self.ge} to {self.le}, or a list of them")
        return values


def leaves(config: BaseModel, prefix: str = "") -> Iterator[tuple[str, Leaf]]:
    """Yield (dotted path, value) for every key of `config`, in the order of declaration."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def refuse_large(value: Any) -> None:
    """Raise `ValueError` if `value` is or contains (at any depth) an integer that is too large for a table."""
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            refuse_large(inner)
    elif isinstance(value, int) and abs(value) >= TOO_LARGE:
        raise ValueError(f"whole numbers must be below {TOO_LARGE} in size")


def as_texts(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Convert a mapping into `key=value` texts, sorted by key, which can be hashed and stored.

    A value that is a simple word is written without quotes, any other value as JSON.
    """
    return tuple(f"{key}={_text(values[key])}" for key in sorted(values))


def _text(value: Any) -> str:
    bare = isinstance(value, str) and value.isidentifier() and value not in _JSON_WORDS
    return str(value) if bare else json.dumps(value)

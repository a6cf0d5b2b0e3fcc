"""What every config model shares: frozen, no unknown keys, no silent conversions, no NaN."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from mclab.config.error import ConfigError as ConfigError

Scalar = bool | int | float | str | None
Leaf = Scalar | tuple[Scalar, ...]

#: Words that would be read back as something else than text.
_JSON_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity"})


class Strict(BaseModel):
    """Base of every config model. `True` is no integer, `"3"` is no number, an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _as_distinct_sorted(value: Any) -> Any:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise ValueError("needs at least one value")
    if any(isinstance(v, bool) or not isinstance(v, int) for v in values):
        raise ValueError("needs a whole number or a list of them")
    twice = sorted({v for v in values if values.count(v) > 1})
    if twice:
        raise ValueError(f"lists {twice[0]} twice")
    return tuple(sorted(values))


#: One whole number or several: `4` and `[4]` are the same; order carries no meaning.
IntMix = Annotated[tuple[int, ...], BeforeValidator(_as_distinct_sorted)]


def leaves(config: BaseModel, prefix: str = "") -> Iterator[tuple[str, Leaf]]:
    """Every key of `config` under its dotted path, in the order of declaration."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def as_texts(values: Mapping[str, Any]) -> tuple[str, ...]:
    """A mapping as a value that can be hashed and stored: `key=value` for each key, sorted; words bare, else JSON."""
    return tuple(f"{key}={_word(values[key])}" for key in sorted(values))


def _word(value: Any) -> str:
    bare = isinstance(value, str) and value.isidentifier() and value not in _JSON_WORDS
    return str(value) if bare else json.dumps(value)

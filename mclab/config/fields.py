"""Types of keys: a name from a registry, the dotted path of a user's own class or function, and its arguments."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import CoreSchema, no_info_plain_validator_function

from mclab.config.strict import as_texts, refuse_large


def is_path(word: object) -> bool:
    """Return whether `word` is the dotted path of the user's own class or function, such as `my_rules.Leaky`."""
    parts = word.split(".") if isinstance(word, str) else []
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


def _dotted(value: str) -> str:
    """Return `value`, a dotted path or "". Raises `ValueError` for other texts.

    An empty text means that the key is not given. If it must be given, another rule refuses that.
    """
    if value and not is_path(value):
        raise ValueError("must be the dotted path of a class or function, e.g. my_mixers.Mixer")
    return value


#: A dotted path, or an empty text.
Path = Annotated[str, AfterValidator(_dotted)]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_args(value: Any) -> Any:
    """Convert a mapping of names to JSON values into a tuple of `name=value` texts, sorted by name.

    Inner mappings are sorted too, since order has no meaning. Raises `ValueError` for other values.
    """
    if value is None:
        return ()
    if isinstance(value, list | tuple) and all(isinstance(text, str) and "=" in text for text in value):
        value = {name: _json(text) for name, _, text in (each.partition("=") for each in value)}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key.isidentifier() for key in value):
        raise ValueError("must be a mapping of arguments, e.g. {width: 16}")
    refuse_large(value)
    try:
        return as_texts(json.loads(json.dumps(dict(value), sort_keys=True, allow_nan=False)))
    except (TypeError, ValueError):
        raise ValueError("must hold only numbers, texts, true, false, null, and lists or mappings of these") from None


#: A mapping of arguments, stored as a tuple of `name=value` texts, sorted by name.
Args = Annotated[tuple[str, ...], BeforeValidator(_as_args), WithJsonSchema({"type": "object"})]


def keywords(args: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments as values: a text that is valid JSON is parsed, any other stays text."""
    return {name: _json(value) for name, _, value in (text.partition("=") for text in args)}


#: Regular expression of a dotted path, for the JSON schema that editors use.
PATH = r"^[^\W\d]\w*(\.[^\W\d]\w*)+$"


@dataclass(frozen=True, eq=False)
class OneOf:
    """`Annotated[str, OneOf(registry)]` accepts the names in `registry`, as `Literal` would.

    The names are looked up whenever a value is checked, since the registry may grow while the program runs.
    """

    names: Collection[str]
    #: Whether the dotted path of the user's own class or function is accepted too.
    or_path: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        names: dict[str, Any] = {"enum": list(self.names), "type": "string"}
        return {"anyOf": [names, {"type": "string", "pattern": PATH}]} if self.or_path else names

    def _checked(self, value: Any) -> Any:
        if isinstance(value, str) and (value in self.names or (self.or_path and is_path(value))):
            return value
        raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, self.names))})

"""A text that must be one of the words of a registry, which may grow while the program runs."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import CoreSchema, no_info_plain_validator_function

from mclab.config.fields import is_path

#: A dotted path, for editors.
PATH = r"^[^\W\d]\w*(\.[^\W\d]\w*)+$"


@dataclass(frozen=True, eq=False)
class OneOf:
    """`Annotated[str, OneOf(registry)]` is what `Literal` of the registry's words would be, with the words looked up
    each time that a value is checked."""

    words: Collection[str]
    #: Whether the dotted path of a class or function of the user's own may stand in place of a word.
    or_path: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        words: dict[str, Any] = {"enum": list(self.words), "type": "string"}
        return {"anyOf": [words, {"type": "string", "pattern": PATH}]} if self.or_path else words

    def _checked(self, value: Any) -> Any:
        if isinstance(value, str) and (value in self.words or (self.or_path and is_path(value))):
            return value
        raise PydanticKnownError("literal_error", {"expected": ", ".join(map(repr, self.words))})

"""The dotted path of a user's own class or function in a config, and the arguments that it is called with."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from mclab.config.strict import as_texts, refuse_large


def is_path(word: object) -> bool:
    """Whether a word is the dotted path of something of the user's own: `my_rules.Leaky`."""
    parts = word.split(".") if isinstance(word, str) else []
    return len(parts) > 1 and all(part.isidentifier() for part in parts)


def _dotted(value: str) -> str:
    """The empty text stands for a key that was not given: the rules between keys refuse it."""
    if value and not is_path(value):
        raise ValueError("needs the dotted path of a class or function, e.g. my_mixers.Mixer")
    return value


#: A dotted path, or nothing.
Path = Annotated[str, AfterValidator(_dotted)]


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
        raise ValueError("needs a mapping of arguments, e.g. {width: 16}")
    refuse_large(value)
    try:
        return as_texts(json.loads(json.dumps(dict(value), sort_keys=True, allow_nan=False)))
    except (TypeError, ValueError):
        raise ValueError("needs numbers, texts, true, false, null, lists or mappings of them") from None


#: A mapping of arguments; held as one `name=value` text each, sorted.
Args = Annotated[tuple[str, ...], BeforeValidator(_as_args), WithJsonSchema({"type": "object"})]


def keywords(args: tuple[str, ...]) -> dict[str, Any]:
    """The arguments as values: JSON where it is JSON, else a word."""
    return {name: _json(value) for name, _, value in (text.partition("=") for text in args)}

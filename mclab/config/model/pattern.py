"""Which layer has which mixer: a list of words, cycled over the layers."""

from typing import Annotated, Any

from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic_core.core_schema import CoreSchema

from mclab.config.model.mixers import UNNAMED, Mixer, forms, layer_heads, layer_mixer, meant, numbered, word_of
from mclab.config.strict import cut

#: Stands for `model.mixer`.
MIXER = "mixer"
#: As many as there may be layers.
MOST_WORDS = 1024


def _heads() -> tuple[str, ...]:
    return (MIXER, *layer_heads())


def _as_pattern(value: Any) -> Any:
    if value is None:
        return ()
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"needs a list of words, one a layer: {', '.join(forms(_heads()))}")
    if len(words) > MOST_WORDS:
        raise ValueError(f"needs at most {MOST_WORDS} words, the most layers that a model has, has {len(words)}")
    return tuple(map(_checked, words))


def _checked(word: str) -> str:
    """The word in its one spelling: `conv` is `conv/3`. Raises `ValueError` that names the nearest right word."""
    head = word.partition("/")[0]
    if word == MIXER:
        return word
    if head in UNNAMED:
        raise ValueError(f"knows no {cut(word)!r}; put {MIXER} and set model.mixer: {{name: {head}}}")
    if head not in layer_heads():
        raise ValueError(f"knows no {cut(word)!r}; {meant(head, _heads())}")
    return word_of(layer_mixer(word)) or word


def words_schema(heads: tuple[str, ...]) -> dict[str, Any]:
    """The JSON schema of the words that begin so, for editors."""
    tailed = "|".join(numbered(heads)).replace("+", r"\+")
    return {"anyOf": [{"enum": list(heads)}, {"type": "string", "pattern": f"^({tailed})/0*[1-9][0-9]{{0,6}}$"}]}


class _Schema:
    """A list of words; those of memories as they are when it is asked."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "array", "items": words_schema(_heads()), "maxItems": MOST_WORDS}


#: One word or a list of them; null and the empty list are the mixer in every layer.
Pattern = Annotated[tuple[str, ...], BeforeValidator(_as_pattern), _Schema()]


def cycled(pattern: tuple[str, ...], layers: int) -> tuple[str, ...]:
    """The word of each layer."""
    words = pattern or (MIXER,)
    return tuple(words[layer % len(words)] for layer in range(layers))


def mixer_of(word: str, mixer: Mixer) -> Mixer:
    """The mixer that a word stands for where `model.mixer` is `mixer`."""
    return mixer if word == MIXER else layer_mixer(word)


def as_pattern(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of all layers as a pattern: repetitions left out, `()` where `model.mixer` is in every layer."""
    layers = len(words)
    period = next(size for size in range(1, layers + 1) if cycled(words[:size], layers) == words)
    return () if words[:period] == (MIXER,) else words[:period]

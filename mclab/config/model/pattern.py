"""Which layer has which mixer: a list of words, cycled over the layers."""

from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BeforeValidator

from mclab.config.model.mixers import MIXERS, AttentionMixer, ConvMixer, Mixer

#: Stands for `model.mixer`.
MIXER = "mixer"
_FORMS = f"{MIXER}, conv/K, attention, attention/W"


def _as_pattern(value: Any) -> Any:
    if value is None:
        return ()
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"needs a list of words, one a layer: {_FORMS}")
    return tuple(map(_checked, words))


def _checked(word: str) -> str:
    """The word in its one spelling: `conv` is `conv/3`. Raises `ValueError` that names the nearest right word."""
    head, slash, number = word.partition("/")
    if head == MIXER and not slash:
        return word
    if head in ("conv", "attention") and (not slash or (number.isascii() and number.isdigit() and int(number) > 0)):
        return word_of(_mixer(head, int(number) if slash else None))
    raise ValueError(f"knows no {word!r}; {_hint(head)}; the words are {_FORMS}")


def _hint(head: str) -> str:
    if head in ("conv", "attention"):
        return f"{head}/ wants a whole number from 1"
    if head in MIXERS:
        return f"put {MIXER} and set model.mixer: {{name: {head}}}"
    near = get_close_matches(head, (MIXER, "conv", "attention"), 1, cutoff=0.0)[0]
    return f"did you mean {'conv/3' if near == 'conv' else near}?"


def _mixer(head: str, number: int | None) -> AttentionMixer | ConvMixer:
    if head == "attention":
        return AttentionMixer(window=number)
    return ConvMixer() if number is None else ConvMixer(kernel=number)


def word_of(mixer: Mixer) -> str:
    """The word for a mixer that a pattern can name by itself, `mixer` for the others."""
    if isinstance(mixer, ConvMixer):
        return f"conv/{mixer.kernel}"
    if isinstance(mixer, AttentionMixer):
        return "attention" if mixer.window is None else f"attention/{mixer.window}"
    return MIXER


#: One word or a list of them; null and the empty list are the mixer in every layer.
Pattern = Annotated[tuple[str, ...], BeforeValidator(_as_pattern)]


def cycled(pattern: tuple[str, ...], layers: int) -> tuple[str, ...]:
    """The word of each layer."""
    words = pattern or (MIXER,)
    return tuple(words[layer % len(words)] for layer in range(layers))


def mixer_of(word: str, mixer: Mixer) -> Mixer:
    """The mixer that a word stands for where `model.mixer` is `mixer`."""
    if word == MIXER:
        return mixer
    head, slash, number = word.partition("/")
    return _mixer(head, int(number) if slash else None)


def shortest(pattern: tuple[str, ...], layers: int, mixer: Mixer) -> tuple[str, ...]:
    """The one way of writing a pattern: `model.mixer` under its own word, repetitions left out, `()` for nothing else.

    Patterns are equal here just when every layer has the same mixer.
    """
    own = word_of(mixer)
    words = tuple(MIXER if word == own else word for word in cycled(pattern, layers))
    period = next(size for size in range(1, layers + 1) if cycled(words[:size], layers) == words)
    return () if words[:period] == (MIXER,) else words[:period]

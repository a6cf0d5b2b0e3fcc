"""Harmless settings of a model that a researcher may not have meant."""

from collections.abc import Iterator

from mclab.config.model.attention import AttentionMixer
from mclab.config.model.lm import ModelConfig
from mclab.config.model.memory import MemoryMixer
from mclab.config.model.pattern import MIXER, mixer_of


def model_oddities(model: ModelConfig, length: int) -> Iterator[str]:
    """A line for each on sequences of `length` tokens, from the dotted path of its key on."""
    unused = model.pattern[model.layers :]
    if unused:
        yield (
            f"model.pattern: has {len(model.pattern)} words for {model.layers} layers: "
            f"{', '.join(unused)} stands for none"
        )
    for word in dict.fromkeys(model.words):
        lines = mixer_of(word, model.mixer).oddities(length)
        yield from (f"model.mixer.{line}" if word == MIXER else _of_word(word, line, length) for line in lines)
    if model.position == "rotary" and not any("position" in mixer.obeys for mixer in model.mixers):
        yield f"model.position: rotary turns queries and keys, and {_why(model)}: as with none"


def _of_word(word: str, line: str, length: int) -> str:
    """A mixer's line about the key that the word's number gives."""
    key = line.partition(":")[0]
    return f"model.pattern: the {key} of {word} is not below task.length {length}: as {word.partition('/')[0]} alone"


def _why(model: ModelConfig) -> str:
    """What makes the layers deaf to the model's position."""
    if not any("heads" in mixer.obeys for mixer in model.mixers):
        return "no layer has any"
    own = any(isinstance(mixer, AttentionMixer) for mixer in model.mixers)
    if own:
        return "every attention has its own rotary"
    rotary = (mixer.memory for mixer in model.mixers if isinstance(mixer, MemoryMixer) and mixer.rule.rotary)
    return f"{' and '.join(dict.fromkeys(rotary))} turns its own in any case"

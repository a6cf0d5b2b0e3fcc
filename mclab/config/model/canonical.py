"""The one way of writing a model: what changes nothing is left out, what can be said once is said once."""

from collections.abc import Iterator
from itertools import product

from mclab.config.baselines import baseline
from mclab.config.model.attention import AttentionMixer
from mclab.config.model.lm import ModelConfig
from mclab.config.model.mixers import MIXERS, Mixer, layer_mixer, spelled, word_of
from mclab.config.model.pattern import MIXER, as_pattern
from mclab.config.strict import Leaf

#: Words that patterns had before memories and presets had any, as far as they are one spelling of a mixer.
_FIRST = ("conv", "attention", MIXER)


def canonical_model(model: ModelConfig, length: int | None = None) -> ModelConfig:
    """The model that stands for every model with the same layers, on sequences of `length` tokens where it is given.

    An attention's own `rotary` and `conv` become the model's where all layers agree on them. In the pattern stands
    `mixer` for one kind of layer, which is `model.mixer`, and a word for each other.
    """
    layers = tuple(_explicit(mixer, model) for mixer in model.mixers)
    fitted = layers if length is None else tuple(mixer.fitted(length).canonical() for mixer in layers)
    position, conv, mixers = _framed(model, fitted)
    if fitted != layers and _nameless(mixers) > 1:
        position, conv, mixers = _framed(model, layers)
    own = _own(model, mixers)
    words = tuple(MIXER if mixer == own else word_of(mixer) or MIXER for mixer in mixers)
    heads = model.heads if _obeyed(layers, "heads") else baseline("model", "heads")
    wanted = {"heads": heads, "position": position, "conv": conv, "mixer": own, "pattern": as_pattern(words)}
    changes = {key: value for key, value in wanted.items() if getattr(model, key) != value}
    return model.model_copy(update=changes) if changes else model


def inert_keys(model: ModelConfig) -> frozenset[str]:
    """Dotted paths, from the model on, of the keys that change nothing in it."""
    unused = {key for key in ("heads", "conv") if not _obeyed(model.mixers, key)}
    return frozenset(f"mixer.{key}" for key in model.mixer.inert) | unused


def moved_words(model: ModelConfig) -> dict[str, Leaf]:
    """What the words of the pattern stand for besides what they did at first: `titans.depth` and its value, for each
    key whose default is not its baseline any more."""
    found: dict[str, Leaf] = {}
    for word in sorted({*model.words} - {MIXER}):
        mixer = layer_mixer(word)
        given = {*spelled(word), "aggregate"}
        keys = (key for key in type(mixer).model_fields if key not in given and key not in mixer.inert)
        moved = {key: getattr(mixer, key) for key in keys if getattr(mixer, key) != baseline(mixer.name, key)}
        found |= {f"{word}.{key}": value for key, value in moved.items()}
    return found


def _obeyed(mixers: tuple[Mixer, ...], key: str) -> bool:
    return any(key in mixer.obeys for mixer in mixers)


def _explicit(mixer: Mixer, model: ModelConfig) -> Mixer:
    """The mixer with nothing left to the model that it can say itself."""
    if not isinstance(mixer, AttentionMixer):
        return mixer.canonical()
    return mixer.model_copy(update={"rotary": mixer.turns(model.position), "conv": mixer.taps(model.conv)})


def _framed(model: ModelConfig, layers: tuple[Mixer, ...]) -> tuple[str, int, tuple[Mixer, ...]]:
    """The position and conv of the model by which most of these layers have a word, and the layers beside them."""
    position, conv = min(_frames(model, layers), key=lambda frame: _nameless(_beside(layers, *frame)))
    return position, conv, _beside(layers, position, conv)


def _frames(model: ModelConfig, layers: tuple[Mixer, ...]) -> Iterator[tuple[str, int]]:
    """Every position and conv that the model may have around these layers, those without rotation and at the
    baseline first.

    What a layer obeys stays; what none has is at its baseline.
    """
    own = [mixer for mixer in layers if isinstance(mixer, AttentionMixer)]
    usual = baseline("model", "conv")
    positions = sorted({"rotary" if mixer.rotary else "none" for mixer in own}) or ["none"]
    convs = sorted({mixer.taps(usual) for mixer in own}, key=lambda conv: (conv != usual, conv)) or [usual]
    if _obeyed(layers, "position") or model.position == "learned":
        positions = [model.position]
    yield from product(positions, [model.conv] if _obeyed(layers, "conv") else convs)


def _beside(layers: tuple[Mixer, ...], position: str, conv: int) -> tuple[Mixer, ...]:
    return tuple(mixer.beside(position, conv) if isinstance(mixer, AttentionMixer) else mixer for mixer in layers)


def _nameless(mixers: tuple[Mixer, ...]) -> int:
    """Kinds of layers that no word names. More than one cannot be written."""
    return len({mixer for mixer in mixers if word_of(mixer) is None})


def _old(mixer: Mixer) -> bool:
    """Whether ids were made of such a mixer before words named every kind of layer."""
    if isinstance(mixer, AttentionMixer):
        return mixer.rotary is None and mixer.conv is None
    return mixer.name != "log_linear"


def _own(model: ModelConfig, mixers: tuple[Mixer, ...]) -> Mixer:
    """The kind of layer that `model.mixer` is to be: one that no word names; else, of words that were always there, the
    one that it was, since ids have been made of it; else the first memory, attention or convolution."""
    nameless = [mixer for mixer in mixers if word_of(mixer) is None]
    if nameless:
        return nameless[0]
    if MIXER in model.words and all(word.partition("/")[0] in _FIRST for word in model.words):
        given = mixers[model.words.index(MIXER)]
        if _old(model.mixer) and (not isinstance(model.mixer, AttentionMixer) or model.mixer == given):
            return given
    rank = list(MIXERS)
    return min(mixers, key=lambda mixer: rank.index(mixer.name))

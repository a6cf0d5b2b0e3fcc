"""Every mixer by its name, and the words that name one with its keys: `titans`, `attention/16`, `transformer++`; or the
dotted path of the user's own."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, cast, get_args

from pydantic import BeforeValidator, Field

from mclab.config.error import did_you_mean
from mclab.config.fields import is_path
from mclab.config.model.attention import PRESETS, AttentionMixer
from mclab.config.model.base import MixerConfig
from mclab.config.model.conv import ConvMixer
from mclab.config.model.log_linear import LogLinearMixer
from mclab.config.model.memory import MemoryMixer
from mclab.config.model.module import ModuleMixer
from mclab.config.model.rules import RULES
from mclab.config.strict import cut


def opened(value: Any) -> Any:
    """A mapping with the name of a mixer, from a word, a module's dotted path or a mapping, also a preset's; anything
    else is left as it is.

    Raises `ValueError` for a word or a preset that is none.
    """
    if isinstance(value, str):
        return {"name": "module", "module": value} if is_path(value) else spelled(value)
    if not isinstance(value, dict):
        return value
    name = value.get("name", "memory")
    if isinstance(name, str) and name in RULES:
        raise ValueError(f"name: {name} is a memory; write {{name: memory, memory: {name}}} or, alone, mixer: {name}")
    return unfolded(value) if isinstance(name, str) and name in PRESETS else {**value, "name": name}


Mixer = Annotated[
    Annotated[MemoryMixer | AttentionMixer | LogLinearMixer | ConvMixer | ModuleMixer, Field(discriminator="name")],
    BeforeValidator(opened),
]

#: Every mixer by the word that stands under `model.mixer.name`.
MIXERS: dict[str, type[MixerConfig]] = {
    kind.model_fields["name"].default: kind for kind in get_args(get_args(Mixer)[0])
}
#: No words of a pattern: `mixer` stands for the one with keys of its own.
UNNAMED = ("memory", "module")


def unfolded(value: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping that one with a preset's name stands for. Raises `ValueError` where a key contradicts the preset."""
    meant = PRESETS[value["name"]]
    for key, given in value.items():
        if key != "name" and key in meant and repr(given) != repr(meant[key]):
            right = str(meant[key]).lower()
            raise ValueError(f"{key}: {value['name']} has {right} there; write name: {meant['name']} for another")
    return {**value, **meant}


def spelled(word: str) -> dict[str, Any]:
    """The mapping that a word alone stands for under `model.mixer`: `attention/16` is {name: attention, window: 16},
    `titans` is {name: memory, memory: titans}.

    Raises `ValueError` that names the nearest right word.
    """
    head, slash, number = word.partition("/")
    if head not in _heads():
        raise ValueError(f"knows no {cut(word)!r}; {meant(head, tuple(_heads()))}")
    key = _number(head)
    if slash and key is None:
        raise ValueError(f"knows no {cut(word)!r}; {head} takes no number")
    if slash and not _counts(number, most := _most(head)):
        raise ValueError(f"knows no {cut(word)!r}; {head}/ wants a whole number from 1 to {most}")
    return {**_heads()[head], **({str(key): int(number)} if slash else {})}


def _most(head: str) -> int:
    """The greatest number that a word takes: the bound of the key that it gives."""
    field = MIXERS[_heads()[head]["name"]].model_fields[str(_number(head))]
    return next(int(mark.le) for mark in field.metadata if hasattr(mark, "le"))


def _counts(digits: str, most: int) -> bool:
    """True for a whole number from 1 to `most`."""
    plain = digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= len(str(most))
    return plain and 1 <= int(digits.lstrip("0") or "0") <= most


def meant(head: str, heads: tuple[str, ...]) -> str:
    """What was probably meant, or all that there is."""
    return did_you_mean(head, heads) or f"it is one of {', '.join(forms(heads))}"


def _heads() -> Mapping[str, Mapping[str, Any]]:
    """What may stand before the `/` of a word: a mixer's name, a preset's, a memory's."""
    memories = {word: {"name": "memory", "memory": word} for word in RULES}
    return {**{name: {"name": name} for name in MIXERS}, **PRESETS, **memories}


def layer_heads() -> tuple[str, ...]:
    """Those that name a layer of a pattern."""
    return tuple(head for head in _heads() if head not in UNNAMED)


def mixer_heads() -> tuple[str, ...]:
    """Those that stand alone under `model.mixer`; a module cannot, it needs its path."""
    return tuple(head for head in _heads() if head != "module")


def forms(heads: tuple[str, ...]) -> Iterator[str]:
    """The words that begin so, as people are told of them: `attention`, `attention/W`, `titans`."""
    for head in heads:
        yield head
        if key := _number(head):
            yield f"{head}/{key[0].upper()}"


def numbered(heads: tuple[str, ...]) -> tuple[str, ...]:
    """Those that take a number."""
    return tuple(head for head in heads if _number(head))


def _number(head: str) -> str | None:
    return MIXERS[_heads()[head]["name"]].number if head in _heads() else None


@cache
def layer_mixer(word: str) -> Mixer:
    """The mixer of a layer that a pattern names by this word: keys at their defaults, a memory without caching.

    Raises `ValueError` as `spelled` does.
    """
    keys = spelled(word)
    bare = {"aggregate": "none"} if keys["name"] == "memory" else {}
    return cast("Mixer", MIXERS[keys["name"]].model_validate({**keys, **bare}).canonical())


@cache
def word_of(mixer: Mixer) -> str | None:
    """The word by which a pattern can name this mixer, in its one spelling; None for one that has none."""
    number = getattr(mixer, mixer.number) if mixer.number else None
    tail = "" if number is None else f"/{number}"
    words = (f"{head}{tail}" for head in layer_heads() if _heads()[head]["name"] == mixer.name)
    return next((word for word in words if layer_mixer(word) == mixer.canonical()), None)

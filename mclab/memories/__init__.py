"""Update rules by the word that stands under `model.mixer.memory`."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from mclab.config.fields import is_path
from mclab.config.model import RULES
from mclab.memories.base import Memory


class _Memories(Mapping[str, type[Memory]]):
    """The class of every rule, found by the rule's word when it is wanted: `GatedDeltaMemory` in `gated_delta.py`.

    A dotted path is that of a rule of the user's own, and no word of the mapping: it has the class that runs such."""

    def __getitem__(self, word: str) -> type[Memory]:
        if is_path(word):
            from mclab.memories.own import OwnMemory

            return OwnMemory
        if word not in RULES:
            raise KeyError(word)
        name = "".join(part.capitalize() for part in word.split("_")) + "Memory"
        found: type[Memory] = getattr(import_module(f"{__name__}.{word}"), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(RULES)

    def __len__(self) -> int:
        return len(RULES)


MEMORIES = _Memories()

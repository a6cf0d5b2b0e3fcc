"""Update rules by the word that stands under `model.mixer.memory`."""

from mclab.memories.base import Memory
from mclab.memories.linear import LinearMemory

MEMORIES: dict[str, type[Memory]] = {"linear": LinearMemory}

"""Update rules by the word that stands under `model.mixer.memory`."""

from mclab.memories.base import Memory
from mclab.memories.dla import DlaMemory
from mclab.memories.linear import LinearMemory
from mclab.memories.retnet import RetnetMemory
from mclab.memories.swla import SwlaMemory
from mclab.memories.titans import TitansMemory
from mclab.memories.vector import VectorMemory

MEMORIES: dict[str, type[Memory]] = {
    "linear": LinearMemory,
    "retnet": RetnetMemory,
    "swla": SwlaMemory,
    "dla": DlaMemory,
    "titans": TitansMemory,
    "vector": VectorMemory,
}

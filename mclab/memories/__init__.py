"""Update rules by the word that stands under `model.mixer.memory`."""

from mclab.memories.base import Memory
from mclab.memories.delta import DeltaMemory
from mclab.memories.dla import DlaMemory
from mclab.memories.gated_delta import GatedDeltaMemory
from mclab.memories.linear import LinearMemory
from mclab.memories.mamba2 import Mamba2Memory
from mclab.memories.memora import MemoraMemory
from mclab.memories.retnet import RetnetMemory
from mclab.memories.rwkv7 import Rwkv7Memory
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
    "delta": DeltaMemory,
    "gated_delta": GatedDeltaMemory,
    "rwkv7": Rwkv7Memory,
    "mamba2": Mamba2Memory,
    "memora": MemoraMemory,
}

"""Update rules by the name under `model.mixer.memory`: one file each, `gated_delta.py` with `GatedDeltaMemory`.

To add a memory: a file here with its class, and a row in `mclab.config.model.RULES`.

- The contract: `base`.
- What several rules share: `base_decay` (retnet, mamba2, swla), `base_delta` (delta, gated_delta, rwkv7),
  `base_gradient` (dla, titans).
- The rules: `linear`, `vector`, `memora` and those named above; `own` runs a rule of the user's own.
- How a written sequence is cut and read: `chunks`, `fast_weights`, `sparse_read` (ssc), `segment_masks`.
- `kernel_choice`: whether a Triton kernel computes a rule.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module

from mclab.config.fields import is_path
from mclab.config.model import RULES
from mclab.memories.base import Memory


class _Memories(Mapping[str, type[Memory]]):
    """The class of every rule, imported when it is asked for.

    A dotted path names a rule of the user's own. It is not among the keys of the mapping, but looking it up returns the
    class that runs such rules."""

    def __getitem__(self, name: str) -> type[Memory]:
        if is_path(name):
            from mclab.memories.own import OwnMemory

            return OwnMemory
        if name not in RULES:
            raise KeyError(name)
        class_name = "".join(part.capitalize() for part in name.split("_")) + "Memory"
        found: type[Memory] = getattr(import_module(f"{__name__}.{name}"), class_name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(RULES)

    def __len__(self) -> int:
        return len(RULES)


MEMORIES = _Memories()

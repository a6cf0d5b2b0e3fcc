"""Read the memories that one token sees, with the interface of a written sequence (`memories.base.Written`).

Every read calls the memory's `read`, for many states at once. Shapes: N kept memories, G sequences and heads folded, J
columns that a token chose; the last of them is the online memory.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mclab.memories.base import Memory, State


@dataclass(frozen=True)
class TokenRead:
    """The kept memories and the online memory that one token sees."""

    memory: Memory
    kept: tuple[Tensor, ...]
    """The matrices of the kept memories: for each layer [N, G, O, I]."""
    online: State

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        own_GV, reads_NGV = self.memory.read(self.online, q_GTK[:, 0]), self._reads(self.kept, q_GTK)
        if weights_GTN is None:
            return (own_GV if reads_NGV is None else own_GV + reads_NGV.sum(0)).unsqueeze(1)
        return _summed(own_GV, reads_NGV, weights_GTN)

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        own_GV, chosen = self.memory.read(self.online, q_GTK[:, 0]), columns_GTJ[:, 0, :-1].T
        if not len(chosen):
            return _summed(own_GV, None, weights_GTJ)
        # If a token chose fewer than k memories, its own column is repeated with weight zero; any valid index will do
        # for it.
        place, each = chosen.clamp(max=len(self.kept[0]) - 1), torch.arange(len(own_GV), device=chosen.device)
        return _summed(own_GV, self._reads(tuple(w[place, each] for w in self.kept), q_GTK), weights_GTJ)

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        states = [State(weights) for weights in zip(*(w.unbind() for w in self.kept), strict=True)]
        weights = q_GTK.new_ones(len(q_GTK), 1, len(states) + 1) if weights_GTN is None else weights_GTN
        mixed = self.memory.mix([*states, self.online], list(weights[:, 0].unbind(-1)))
        return self.memory.read(mixed, q_GTK[:, 0]).unsqueeze(1)

    def _reads(self, kept: tuple[Tensor, ...], q_GTK: Tensor) -> Tensor | None:
        """Return the output of each memory in `kept` for the one query, [N, G, V]; `None` if there is none."""
        if not kept:
            return None
        count = len(kept[0])
        q = q_GTK[:, 0].expand(count, -1, -1).flatten(0, 1)
        return self.memory.read(State(tuple(w.flatten(0, 1) for w in kept)), q).unflatten(0, (count, -1))


def _summed(own_GV: Tensor, reads_NGV: Tensor | None, weights_GTN: Tensor) -> Tensor:
    own = weights_GTN[:, :, -1] * own_GV
    past = 0.0 if reads_NGV is None else torch.einsum("ngv,gn->gv", reads_NGV, weights_GTN[:, 0, :-1])
    return (own + past).unsqueeze(1)

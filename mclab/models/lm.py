"""The language model: embedding, blocks, final norm, head tied to the embedding.

Shapes: R replicas, B batch, T time, D model width, Q scored positions, V vocabulary.

See docs/equations.md#language-model.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.config.run import RunConfig
from mclab.constants import once
from mclab.models.block import Block
from mclab.replicas.layers import RMSNorm, linear
from mclab.replicas.parameters import Normal, parameter


class LM(nn.Module):
    """`replicas` independent models, run as one batched model.

    Parameters have no values until `replicas.parameters.initialise` draws them.
    """

    def __init__(self, run: RunConfig, replicas: int) -> None:
        super().__init__()
        model, vocab, length = run.model, run.task.vocab, run.task.length
        # Each of the 2 * layers branches adds to the stream; their initial weights are scaled to keep the sum near one.
        gain = 1 / math.sqrt(2 * model.layers)
        self.embedding = parameter(replicas, vocab, model.dim, init=Normal(1 / math.sqrt(model.dim)))
        learned = model.position == "learned"
        start = Normal(1 / math.sqrt(model.dim))
        self.position = parameter(replicas, length, model.dim, init=start) if learned else None
        self.blocks = nn.ModuleList(Block(replicas, model, mixer, length, gain) for mixer in model.mixers)
        self.norm = RMSNorm(replicas, model.dim)

    def forward(self, tokens_RBT: Tensor, positions_RBQ: Tensor) -> Tensor:
        """Return [R, B, Q, V]: the logits at the scored positions.

        The head and the last MLP run on these positions only.
        """
        x_RBTD = self._embed(tokens_RBT)
        *earlier, last = (block for block in self.blocks if isinstance(block, Block))
        for block in earlier:
            x_RBTD = block.feed_forward(block.mix(x_RBTD))
        scored = positions_RBQ.unsqueeze(-1).expand(-1, -1, -1, x_RBTD.shape[-1])
        h_RBQD = self.norm(last.feed_forward(last.mix(x_RBTD).gather(2, scored)))
        return linear(h_RBQD, self.embedding.transpose(1, 2))

    def _embed(self, tokens_RBT: Tensor) -> Tensor:
        R, V, D = self.embedding.shape
        offset = _offsets(R, V, tokens_RBT.device)
        x_RBTD = F.embedding(tokens_RBT + offset, self.embedding.reshape(R * V, D))
        return x_RBTD if self.position is None else x_RBTD + self.position[:, None, : x_RBTD.shape[2]]


@once
def _offsets(replicas: int, vocab: int, device: torch.device) -> Tensor:
    """Return [R, 1, 1]: the first row of each replica in the stacked embedding [R * V, D]."""
    return torch.arange(0, replicas * vocab, vocab, device=device)[:, None, None]

"""A user's own torch module as a mixer, run once for each replica.

Shapes: R replicas, B batch, T time, D model width.

See docs/equations.md#your-own-module.
"""

import torch
from torch import Tensor

from mclab.config.model import Mixer, ModelConfig, ModuleMixer
from mclab.own.found import make
from mclab.replicas.stacked import Stacked


class Modules(Stacked):
    """The user's modules of all R replicas as one module."""

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        assert isinstance(mixer, ModuleMixer)
        super().__init__(replicas, lambda: make(mixer, model.dim, length))

    def forward(self, x_RBTD: Tensor) -> Tensor:
        outputs: list[Tensor] = self.each(lambda module, replica: module(x_RBTD[replica]))
        return torch.stack(outputs)

"""A short gated convolution: BaseConv of Zoology (Arora et al. 2023, arXiv 2312.04927).

Shapes: R replicas, B batch, T time, D model width.

See docs/equations.md#gated-convolution.
"""

import math

from torch import Tensor, nn

from mclab.config.model import ConvMixer, Mixer, ModelConfig
from mclab.kernels.conv import causal_conv
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Constant, Normal, parameter


class GatedConv(nn.Module):
    """(u W + b1) * (h conv u + b2) + u, with a causal depthwise filter h of `kernel` tokens.

    The product is the paper's equation. The sum with u is as in the paper's code (zoology/mixers/base_conv.py), where
    it is inside the layer, in addition to the residual connection of the block; in the paper only the block has it.
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        assert isinstance(mixer, ConvMixer)
        dim, kernel_size = model.dim, mixer.kernel
        self.weight = parameter(replicas, dim, dim, init=Normal(gain / math.sqrt(dim)))
        self.bias = parameter(replicas, dim, init=Constant(0.0))
        self.taps = parameter(replicas, kernel_size, dim, init=Normal(1 / math.sqrt(kernel_size)), decays=False)
        self.taps_bias = parameter(replicas, dim, init=Constant(0.0))

    def forward(self, u_RBTD: Tensor) -> Tensor:
        gate = linear(u_RBTD, self.weight) + self.bias[:, None, None]
        return gate * (causal_conv(u_RBTD, self.taps) + self.taps_bias[:, None, None]) + u_RBTD

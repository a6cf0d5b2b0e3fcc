"""Causal softmax attention, the baseline mixer (Vaswani et al. 2017; window as in Longformer).

Shapes: R replicas, B batch, T time, D model width, H heads.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.config.model import AttentionMixer, Mixer, ModelConfig
from mclab.layers import Linear, ShortConv, rotate


class Attention(nn.Module):
    """Rotary where `position: rotary`; the short convolution, without activation, where `conv` is not 0."""

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        assert isinstance(mixer, AttentionMixer)
        self.heads, self.window, self.rotary = model.heads, mixer.window, model.position == "rotary"
        self.qkv = Linear(replicas, model.dim, 3 * model.dim)
        self.conv = ShortConv(replicas, 3 * model.dim, model.conv) if model.conv else nn.Identity()
        self.out = Linear(replicas, model.dim, model.dim, gain)

    def forward(self, x_RBTD: Tensor) -> Tensor:
        q, k, v = (self._split(z) for z in self.conv(self.qkv(x_RBTD)).chunk(3, dim=-1))
        if self.rotary:
            q, k = rotate(q), rotate(k)
        mask = None if self.window is None else self._band(x_RBTD)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        mixed: Tensor = self.out(y.transpose(1, 2).flatten(-2).view_as(x_RBTD))
        return mixed

    def _split(self, x_RBTD: Tensor) -> Tensor:
        return x_RBTD.unflatten(-1, (self.heads, -1)).flatten(0, 1).transpose(1, 2)

    def _band(self, x_RBTD: Tensor) -> Tensor:
        assert self.window is not None
        at = torch.arange(x_RBTD.shape[2], device=x_RBTD.device)
        back = at[:, None] - at
        return (back >= 0) & (back < self.window)

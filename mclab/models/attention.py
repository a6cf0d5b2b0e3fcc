"""Causal softmax attention, the baseline mixer (Vaswani et al. 2017; window as in Longformer).

Shapes: R replicas, B batch, T time, D model width, H heads, K head width, N blocks, C tokens in a block,
J = 2 C. In `window_attention` B is R*B.

See docs/equations.md#attention, docs/equations.md#window.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.config.model import AttentionMixer, Mixer, ModelConfig
from mclab.constants import once
from mclab.replicas.layers import Linear, ShortConv, rotate

#: A window is read in blocks as long as the window, but of at least BLOCK tokens, if at least FEWEST blocks fit into
#: the sequence. With fewer blocks one mask over all tokens is as fast.
BLOCK, FEWEST = 32, 8


@dataclass(frozen=True)
class AttentionPast:
    """The state of a sequence, from which its next token continues.

    `taps` are the last inputs of the convolution. `k` (rotated) and `v` are the keys and values that the window still
    reaches, [R*B, H, J, K] each. The names of the fields are those in a stored cache.
    """

    tokens: int = 0
    taps: Tensor | None = None
    k: Tensor | None = None
    v: Tensor | None = None


class Attention(nn.Module):
    """Softmax attention, with rotary positions and a short convolution (without activation) if the keys say so.

    Keys in `mixer` override those in `model`.
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        assert isinstance(mixer, AttentionMixer)
        self.heads, self.window, self.rotary = model.heads, mixer.window, mixer.rotates(model.position)
        kernel_size = mixer.kernel_size(model.conv)
        self.qkv = Linear(replicas, model.dim, 3 * model.dim)
        self.conv = ShortConv(replicas, 3 * model.dim, kernel_size) if kernel_size else nn.Identity()
        self.out = Linear(replicas, model.dim, model.dim, gain)

    def forward(self, x_RBTD: Tensor) -> Tensor:
        q, k, v = (self._split(z) for z in self.conv(self.qkv(x_RBTD)).chunk(3, dim=-1))
        if self.rotary:
            q, k = rotate(q), rotate(k)
        if self.window is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = window_attention(q, k, v, self.window)
        mixed: Tensor = self.out(y.transpose(1, 2).flatten(-2).view_as(x_RBTD))
        return mixed

    def after(self, past: AttentionPast, x_RBTD: Tensor) -> tuple[Tensor, AttentionPast]:
        """Return the output of `forward`, with a window, for tokens that follow `past`, and the state after them."""
        assert self.window is not None
        mixed, taps, T = self.qkv(x_RBTD), past.taps, x_RBTD.shape[2]
        if isinstance(self.conv, ShortConv):
            mixed, taps = self.conv.after(taps, mixed)
        q, k, v = (self._split(z) for z in mixed.chunk(3, dim=-1))
        if self.rotary:
            q, k = rotate(q, past.tokens), rotate(k, past.tokens)
        if past.k is None or past.v is None:
            y = window_attention(q, k, v, self.window)
        else:
            k, v = torch.cat((past.k.to(k.dtype), k), 2), torch.cat((past.v.to(v.dtype), v), 2)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=_band(T, k.shape[2], self.window, k.device))
        first = max(0, k.shape[2] - self.window + 1)
        left = AttentionPast(past.tokens + T, taps, k[:, :, first:].clone(), v[:, :, first:].clone())
        mixed_RBTD: Tensor = self.out(y.transpose(1, 2).flatten(-2).view_as(x_RBTD))
        return mixed_RBTD, left

    def _split(self, x_RBTD: Tensor) -> Tensor:
        return x_RBTD.unflatten(-1, (self.heads, -1)).flatten(0, 1).transpose(1, 2)


def window_attention(q_BHTK: Tensor, k_BHTK: Tensor, v_BHTK: Tensor, window: int) -> Tensor:
    """Return [..., T, K]: softmax attention of every token to itself and the `window - 1` tokens before it."""
    T, size = q_BHTK.shape[-2], max(window, BLOCK)
    if FEWEST * size > T:
        return F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, attn_mask=_band(T, T, window, q_BHTK.device))
    short = -T % size
    q = F.pad(q_BHTK, (0, 0, 0, short)).unflatten(-2, (-1, size))
    k, v = (_with_last(F.pad(z, (0, 0, size, short)).unflatten(-2, (-1, size))) for z in (k_BHTK, v_BHTK))
    mask_NCJ = _band(size, 2 * size, window, q.device).repeat(q.shape[-3], 1, 1)
    mask_NCJ[0, :, :size] = False  # before the first token there are no keys
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask_NCJ).flatten(-3, -2)[..., :T, :]


@once
def _band(queries: int, keys: int, window: int, device: torch.device) -> Tensor:
    """Return [queries, keys]: True for the keys that each of the last `queries` of `keys` tokens sees."""
    back = torch.arange(keys - queries, keys, device=device)[:, None] - torch.arange(keys, device=device)
    return (back >= 0) & (back < window)


def _with_last(x_BHNCK: Tensor) -> Tensor:
    """Return [..., N - 1, 2 C, K]: each block but the first, with the block before it in front."""
    return torch.cat((x_BHNCK[..., :-1, :, :], x_BHNCK[..., 1:, :, :]), -2)

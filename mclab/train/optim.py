"""AdamW for a pack: every replica has its own learning rate, weight decay and clipping norm.

All parameters live in one [R, P] tensor (train/replicas.py), so that a step is a handful of operations whatever the
number of layers.
"""

import math

import torch
from torch import Tensor

BETA1, BETA2, EPS = 0.9, 0.95, 1e-8
#: The learning rate ends at this share of its peak.
FLOOR = 0.1


def schedule(step: int, steps: int, warmup: float) -> float:
    """Share of the peak learning rate at 0-based `step`: linear rise over `warmup * steps`, then cosine to FLOOR."""
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / rising
    progress = (step - rising) / max(1, steps - 1 - rising)
    return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


class AdamW:
    """Loshchilov & Hutter 2019, on the rows of `values` [R, P]; `decayed` [P] marks the entries of matrices."""

    def __init__(self, values_RP: Tensor, decayed_P: Tensor, lr_R: Tensor, decay_R: Tensor, clip_R: Tensor) -> None:
        self.values, self.lr, self.clip = values_RP, lr_R[:, None], clip_R[:, None]
        self.decay_RP = decay_R[:, None] * decayed_P.to(values_RP.dtype)
        self.mean, self.square = torch.zeros_like(values_RP), torch.zeros_like(values_RP)
        self.count = 0

    @torch.no_grad()
    def step(self, grad_RP: Tensor, norm_R: Tensor, alive_R: Tensor, factor: float) -> None:
        """One update at `factor` times the peak learning rate; rows that are not alive stay as they are."""
        self.count += 1
        scale = (self.clip / norm_R[:, None].clamp(min=1e-12)).clamp(max=1.0)
        grad = torch.where(alive_R[:, None], grad_RP * scale, 0.0)
        self.mean.lerp_(grad, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
        root = (self.square / (1 - BETA2**self.count)).sqrt_().add_(EPS)
        move = self.mean / (1 - BETA1**self.count) / root + self.decay_RP * self.values
        self.values -= move * (factor * self.lr * alive_R[:, None])

"""AdamW for a pack: every replica has its own learning rate, weight decay and clipping norm.

All parameters are in one [R, P] tensor (train/pack.py), so that a step is a few operations whatever the number of
layers.
"""

import math

import torch
from torch import Tensor

BETA1, BETA2, EPS = 0.9, 0.95, 1e-8
#: The final learning rate as a share of its peak.
FLOOR = 0.1


def schedule(step: int, steps: int, warmup: float) -> float:
    """Return the share of the peak learning rate at 0-based `step`.

    It rises linearly over `warmup * steps` steps and then follows a cosine to FLOOR.
    """
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / rising
    progress = (step - rising) / max(1, steps - 1 - rising)
    return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


class AdamW:
    """AdamW (Loshchilov & Hutter 2019) on the rows of `values` [R, P]; `decayed` [P] is true for entries of matrices.

    torch's fused kernel takes a single learning rate. So the kernel updates a tensor of zeros with learning rate 1, and
    each replica adds the result, times its own learning rate, to its values. `count` is the number of updates, on the
    device.
    """

    def __init__(self, values_RP: Tensor, decayed_P: Tensor, lr_R: Tensor, decay_R: Tensor, clip_R: Tensor) -> None:
        self.values, self.lr, self.clip = values_RP, lr_R[:, None], clip_R[:, None]
        self.decay_RP = decay_R[:, None] * decayed_P.to(values_RP.dtype)
        self.mean, self.square, self.move = (torch.zeros_like(values_RP) for _ in range(3))
        self.count = torch.zeros((), device=values_RP.device)
        self._zero = values_RP.new_zeros(())

    @property
    def state(self) -> list[Tensor]:
        """The tensors that a step changes, other than the values."""
        return [self.mean, self.square, self.count]

    @torch.no_grad()
    def step(self, grad_RP: Tensor, norm_R: Tensor, alive_R: Tensor, factor: float | Tensor) -> None:
        """Make one update at `factor` times the peak learning rate. Rows for which `alive_R` is False do not change."""
        alive_R1 = alive_R[:, None]
        scale_R1 = (self.clip / norm_R[:, None]).clamp_(max=1.0)  # 1 where the norm is 0
        grad_RP = torch.where(alive_R1, grad_RP * scale_R1, self._zero)
        self.count += 1
        self.move.zero_()
        torch._fused_adamw_(
            [self.move], [grad_RP], [self.mean], [self.square], [], [self.count],
            lr=1.0, beta1=BETA1, beta2=BETA2, weight_decay=0.0, eps=EPS, amsgrad=False, maximize=False,
        )  # fmt: skip
        self.move.addcmul_(self.decay_RP, self.values, value=-1)
        self.values.addcmul_(self.move, self.lr * factor * alive_R1)

"""A pack: several runs of one shape, trained as one batched model.

Shapes: R replicas (one per run), P parameters of one run. Every tensor of the model has the leading axis R.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from mclab.config.ids import shape_key
from mclab.config.run import RunConfig
from mclab.constants import ones
from mclab.models.lm import LM
from mclab.replicas.parameters import ReplicaParameter, initialise
from mclab.train.optim import AdamW

DTYPES = {"fp32": torch.float32, "bf16": torch.float32, "fp64": torch.float64}


class Pack:
    """The model of all replicas, its parameters as one tensor [R, P], its optimiser, and which replicas are still
    training.

    Raises `ValueError` if the runs differ in more than packable scalars.
    """

    def __init__(self, runs: Sequence[RunConfig], device: torch.device) -> None:
        if len({shape_key(run) for run in runs}) != 1:
            raise ValueError("the runs of a pack may differ only in packable scalars")
        self.runs, self.config = list(runs), runs[0]
        self.model = LM(self.config, len(runs))
        initialise(self.model, [run.seed for run in runs])
        decays = [p.decays for p in self.model.parameters() if isinstance(p, ReplicaParameter)]
        self.model.to(device=device, dtype=DTYPES[self.config.train.precision])
        self.parameters = list(self.model.parameters())
        self.values_RP = _flatten(self.parameters, len(runs))
        each = zip(self.parameters, decays, strict=True)
        decayed = torch.cat([torch.full((p[0].numel(),), own, device=device) for p, own in each])
        self.optimiser = AdamW(self.values_RP, decayed, *self._scalars())
        self.alive_R = torch.ones(len(runs), dtype=torch.bool, device=device)
        self.diverged_R = torch.full((len(runs),), -1, device=device)

    def _scalars(self) -> tuple[Tensor, Tensor, Tensor]:
        rows = [(r.train.lr, r.train.weight_decay, r.train.clip) for r in self.runs]
        table = torch.tensor(rows, dtype=torch.float64).to(self.values_RP)
        return table[:, 0], table[:, 1], table[:, 2]

    @property
    def state(self) -> list[Tensor]:
        """The tensors that `update` changes, in place."""
        return [self.values_RP, *self.optimiser.state, self.alive_R, self.diverged_R]

    def update(self, loss_R: Tensor, step: int | Tensor, factor: float | Tensor) -> Tensor:
        """Compute gradients, clip them per replica, take one AdamW step; return the norms [R] of the unclipped
        gradients.

        `step` [] is 1-based; `factor` [] is the share of the peak learning rate. A replica whose loss or gradient is
        not finite stays as it was before this step, and its `diverged_R` is set to the step.
        """
        one_R = ones(tuple(loss_R.shape), loss_R.dtype, loss_R.device)
        grads = torch.autograd.grad(loss_R, self.parameters, one_R)
        grad_RP = torch.cat([g.flatten(1) for g in grads], dim=1)
        norm_R = torch.linalg.vector_norm(grad_RP, dim=1)
        # 0 * x is 0 where x is finite, else NaN, which equals nothing.
        healthy_R = (loss_R.detach() * 0).to(norm_R) == norm_R * 0
        lost_R = self.alive_R > healthy_R
        self.diverged_R.masked_fill_(lost_R, step)
        self.alive_R &= healthy_R
        self.optimiser.step(grad_RP, norm_R, self.alive_R, factor)
        return norm_R


@torch.no_grad()
def _flatten(parameters: Sequence[Tensor], replicas: int) -> Tensor:
    """Move all parameters into one tensor [R, P], and make each parameter a view of its columns there."""
    values_RP = torch.cat([p.flatten(1) for p in parameters], dim=1)
    at = 0
    for p in parameters:
        width = p[0].numel()
        p.data = values_RP[:, at : at + width].view(replicas, *p.shape[1:])
        at += width
    return values_RP

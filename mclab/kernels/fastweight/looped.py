"""This module computes the chunk loop of a deep memory and the steps of its rates.

Triton kernels compute them if they passed their self-check, else torch. Shapes as in fused.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.kernels.fastweight import fused, steps
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.rates import Rates, coefficients
from mclab.kernels.fastweight.states import Plan
from mclab.kernels.fastweight.steps import Steps
from mclab.kernels.selfcheck import trusted


@dataclass(frozen=True)
class Loop:
    """The implementation of `fused.descend_and_read`.

    If `precision` is None, torch computes it. Else `precision` is the training precision, and the kernel of `rule`
    computes it if that kernel passed its self-check.
    """

    rule: str = ""
    precision: str | None = None

    def steps(self, rates: Rates, ends: Sequence[int]) -> Steps:
        """Return the `Steps` of `rates` [M, X, C]; `ends` as in `steps.steps`."""
        if self.precision is None or rates.log_alpha is None or rates.log_beta is None:
            return steps.steps(coefficients(rates), ends)
        from mclab.kernels.fastweight.triton import steps as kernel

        C, eta = rates.eta.shape[-1], rates.eta
        of = ("steps", kernel.constants(C, eta.dtype == torch.float64)["CP"])
        if not trusted(self.rule, eta.device, self.precision, of, lambda: _compared_steps(eta)):
            return steps.steps(coefficients(rates), ends)
        return kernel.steps(rates, ends)

    def __call__(
        self,
        plan: Plan,
        net: Net,
        tokens: tuple[Tensor, Tensor, Tensor],
        rates: tuple[Tensor, Tensor | None, Tensor, Tensor | None],
        start: Sequence[Tensor],
    ) -> tuple[Tensor, list[Tensor]]:
        """See `fused.descend_and_read`."""
        if self.precision is None or not self._trusts(plan, net, tokens[0], rates, self.precision):
            return fused.descend_and_read(plan, net, tokens, rates, start)
        from mclab.kernels.fastweight.triton import deep

        return deep.descend_and_read(plan, net, tokens, rates, start, self.precision == "bf16")

    def _trusts(
        self,
        plan: Plan,
        net: Net,
        q: Tensor,
        rates: tuple[Tensor, Tensor | None, Tensor, Tensor | None],
        precision: str,
    ) -> bool:
        from mclab.kernels.fastweight.triton import deep

        (C, K), scaled, normed = q.shape[2:], rates[1] is not None, net.gain is not None
        known = deep.constants(net, plan, K, C, scaled, normed, precision == "bf16", q.dtype == torch.float64)
        of = tuple((name, str(value)) for name, value in known.items())
        return trusted(self.rule, q.device, precision, of, lambda: _compared(plan, net, q, scaled, precision == "bf16"))


BY_TORCH = Loop()


def _compared_steps(like: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the kernel's results, and those of torch's form computed in fp64, for two chunks of two sequences.

    Each list has the steps and the gradients.
    """
    from mclab.kernels.fastweight.triton import steps as kernel

    C, drawn = like.shape[-1], torch.Generator().manual_seed(0)
    eta, *logits = torch.randn(3, 2, 2, C, generator=drawn).unbind()
    given = [torch.sigmoid(eta), *(F.logsigmoid(x + 1) for x in logits)]
    ends, found = (C - 1, C // 2), []
    given = [torch.stack((x[0], x[1].masked_fill(torch.arange(C) > ends[1], 0.0))) for x in given]
    for exact in (False, True):
        own = [x.to(like.device, torch.float64 if exact else like.dtype).requires_grad_() for x in given]
        rates = Rates(*own)
        each = steps.steps(coefficients(rates), ends) if exact else kernel.steps(rates, ends)
        made = [x for x in (each.writes, each.factors, each.ends, each.mix) if x is not None]
        upstream = torch.Generator().manual_seed(1)
        ups = [torch.randn(x.shape, generator=upstream).to(x) for x in made]
        found.append([*made, *torch.autograd.grad(made, own, ups)])
    return found[0], found[1]


def _compared(plan: Plan, net: Net, like: Tensor, scaled: bool, low: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Return the kernel's results, and those of torch's form computed in fp64, for two chunks of two sequences.

    Each list has the outputs and the gradients.
    """
    from mclab.kernels.fastweight.triton import deep

    M, X, (C, K), s = 2, 2, like.shape[2:], plan.slots
    plan = replace(plan, keep=(1,))
    drawn = torch.Generator().manual_seed(0)
    q, k, v = (F.normalize(torch.randn(M, X, C, K, generator=drawn), dim=-1) for _ in range(3))
    start = [torch.randn(1, K, 4 * K, generator=drawn) * width**-0.5 for width in (K, 4 * K)]
    writes, ends, factors = (0.2 * torch.rand(M, X, C, width, generator=drawn) for width in (C, s, s))
    given = [q, k, v, writes.tril(), ends, *start]
    given += [factors + 0.5, torch.rand(M, X, s, s, generator=drawn).triu()] if scaled else []
    given += [torch.rand(X, 1, K, generator=drawn) + 0.5] if net.gain is not None else []
    found = []
    for exact in (False, True):
        own = [x.to(like.device, torch.float64 if exact else like.dtype).requires_grad_() for x in given]
        q, k, v, writes, ends, start1, start2, *rest = own
        factors_mix = (rest[0], rest[1]) if scaled else (None, None)
        mine = replace(net, gain=rest[-1] if net.gain is not None else None)
        rates, starts = (writes, factors_mix[0], ends, factors_mix[1]), (start1, start2)
        if exact:
            y, kept = fused.descend_and_read(plan, mine, (q, k, v), rates, starts)
        else:
            y, kept = deep.descend_and_read(plan, mine, (q, k, v), rates, starts, low)
        upstream = torch.Generator().manual_seed(1)
        ups = [torch.randn(each.shape, generator=upstream).to(each) for each in (y, *kept)]
        grads = torch.autograd.grad([y, *kept], own, ups)
        found.append([y, *kept, *grads])
    return found[0], found[1]

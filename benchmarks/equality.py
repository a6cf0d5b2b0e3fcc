"""Ours and the `memory-caching` package give the same outputs and gradients in fp64; raises where they do not."""

import torch
from torch import Tensor

from benchmarks.peer import DIM, Case, Ours, theirs

#: Relative; rounding grows along 48 tokens of descent.
BOUND = 1e-10
BATCH, LENGTH, SEGMENT = 2, 48, 16
CASES = (
    *(Case("linear", aggregate, SEGMENT) for aggregate in ("residual", "grm", "ssc")),
    *(Case("swla", aggregate, SEGMENT) for aggregate in ("residual", "grm", "ssc")),
    *(Case("titans", aggregate, SEGMENT) for aggregate in ("residual", "grm", "soup", "ssc")),
    Case("titans", "grm", SEGMENT, "stopgrad"),
)


def assert_equal(case: Case, length: int = LENGTH) -> tuple[float, float | None]:
    """Largest relative difference of outputs and of gradients, None where theirs stop at writes."""
    peer = theirs(case).double()
    ours = Ours(peer, case)
    x = 0.3 * torch.randn(BATCH, length, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mine, other = ours(x), peer(x)
    outputs = _difference(mine, other)
    gradients = None
    if case.mode == "differentiable":
        upstream = torch.randn(mine.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        own = torch.autograd.grad(mine, ours.parameters(), upstream)
        peers = torch.autograd.grad(other, ours.their_parameters(peer), upstream)
        pairs = zip(own, peers, strict=True)
        gradients = max(_difference(g[0] if g.dim() == 4 else g[0].t(), h) for g, h in pairs)
    worst = max(outputs, gradients or 0.0)
    if not worst < BOUND:  # also where it is not a number
        raise ArithmeticError(f"{case.name}: mclab and memory-caching differ by {worst}")
    return outputs, gradients


def _difference(mine: Tensor, other: Tensor) -> float:
    return ((mine - other).abs().max() / other.abs().max()).item()


def main() -> None:
    print(f"\nequal to memory-caching in fp64 (B={BATCH}, T={LENGTH}, D={DIM}, 2 heads, S={SEGMENT}, checkpoints):")
    print("  largest relative difference of outputs and of all gradients")
    for case in CASES:
        outputs, gradients = assert_equal(case)
        print(f"  {case.name:<34} {outputs:.1e}   " + ("theirs stop" if gradients is None else f"{gradients:.1e}"))

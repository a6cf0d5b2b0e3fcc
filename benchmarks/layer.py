"""The linear GRM layer, forward and backward, against the `memory-caching` package: same weights, same outputs.

Their conventions: pool by sum, scale 1, keys and queries neither convolved nor normalised, one bias-free projection
each for q, k, v, u and the output. Equality is asserted in fp64, outputs and gradients, before anything is timed.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import compare, median, spread
from mclab.caching.layer import CachingLayer
from mclab.config.model import MemoryMixer
from mclab.layers import linear

BATCH, LENGTH, DIM, HEADS, SEGMENT = 8, 256, 64, 2, 64
LEAST, REPEATS = 50, 7
#: Ours run so often in a turn, so that neither side pays for the caches that the other has filled.
CALLS = 20


def theirs() -> Any:
    from memory_caching.backends.linear import LinearMemoryBackend
    from memory_caching.config import MCConfig
    from memory_caching.layer import MemoryCachingLayer

    config = MCConfig(d_model=DIM, num_heads=HEADS, backend="linear", aggregation="grm", segment_size=SEGMENT)
    return MemoryCachingLayer(config=config, backend=LinearMemoryBackend())


class Ours:
    """Our caching layer between their projections."""

    def __init__(self, peer: Any) -> None:
        mixer = MemoryMixer(segment=SEGMENT, aggregate="grm", pool="sum", scale=1.0, connector="own", init="checkpoint")
        self.caching = CachingLayer(1, DIM, HEADS, LENGTH, mixer).to(peer.q_proj.weight.dtype)
        self.weights = [p.weight.detach().t()[None].clone().requires_grad_() for p in projections(peer)]
        self.caching.connector.project.weight = torch.nn.Parameter(self.weights[3].detach().clone())

    def parameters(self) -> list[Tensor]:
        q, k, v, _, out = self.weights
        return [q, k, v, self.caching.connector.project.weight, out]

    def __call__(self, x_BTD: Tensor) -> Tensor:
        q, k, v, _, out = self.weights
        x = x_BTD[None]
        y = self.caching(x, linear(x, q), linear(x, k), linear(x, v))
        return linear(y, out)[0]


def projections(peer: Any) -> list[Any]:
    return [peer.q_proj, peer.k_proj, peer.v_proj, peer.u_proj, peer.o_proj]


def assert_equal() -> float:
    """Largest difference of outputs and gradients in fp64; raises where it is not rounding."""
    peer = theirs().double()
    ours = Ours(peer)
    x = 0.3 * torch.randn(2, LENGTH, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mine, other = ours(x), peer(x)
    upstream = torch.randn(mine.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    grads = torch.autograd.grad(mine, ours.parameters(), upstream)
    their_grads = torch.autograd.grad(other, [p.weight for p in projections(peer)], upstream)
    pairs = [(mine, other), *((g[0].t(), h) for g, h in zip(grads, their_grads, strict=True))]
    worst = max(((a - b).abs().max() / b.abs().max()).item() for a, b in pairs)
    assert worst < 1e-10, f"mclab and memory-caching differ by {worst}"
    return worst


def both_ways(layer: Callable[[Tensor], Tensor], parameters: list[Tensor]) -> Callable[[], object]:
    """Forward, and backward to the weights and the input."""
    generator = torch.Generator().manual_seed(0)
    x, upstream = (torch.randn(BATCH, LENGTH, DIM, generator=generator) for _ in range(2))
    x.requires_grad_()
    return lambda: torch.autograd.grad(layer(x), [*parameters, x], upstream)


def products() -> float:
    """Milliseconds for the layer's matrix products and nothing else, each timed by itself with warm caches.

    What no way of writing the layer with these products can beat: the five projections forward, to the weights and to
    the input; scores and reads within segments; states, and reads of earlier segments' states; each with its gradients.
    """
    G, T, K, N = BATCH * HEADS, BATCH * LENGTH, DIM // HEADS, LENGTH // SEGMENT
    projections = [(1, T, DIM, DIM)] * 10 + [(1, DIM, T, DIM)] * 5
    within = [(G * N, SEGMENT, K, SEGMENT)] * 2 + [(G * N, SEGMENT, SEGMENT, K)] * 4
    states = [(G * (N - 1), K, SEGMENT, K)] + [(G * (N - 1), SEGMENT, K, K)] * 2
    rows = [SEGMENT * n for n in range(1, N)]
    across = [shape for r in rows for shape in ((G, r, K, K), (G, r, K, K), (G, K, r, K))]
    every = [*projections, *within, *states, *across]
    return sum(1e3 * product(shape) * every.count(shape) for shape in sorted(set(every)))


def product(shape: tuple[int, int, int, int]) -> float:
    """Fastest seconds of one batched product [G, a, b] x [G, b, c]."""
    G, a, b, c = shape
    left, right, out = torch.randn(G, a, b), torch.randn(G, b, c), torch.empty(G, a, c)
    (times,) = compare((lambda: torch.bmm(left, right, out=out),), 50)
    return times[0]


def main() -> None:
    worst = assert_equal()
    peer = theirs()
    ours = Ours(peer)
    mine_once = both_ways(ours, ours.parameters())

    def mine_often() -> None:
        for _ in range(CALLS):
            mine_once()

    mine, other = compare((mine_often, both_ways(peer, [p.weight for p in projections(peer)])), REPEATS)
    mine = [seconds / CALLS for seconds in mine]
    print(f"\nlinear GRM layer, forward + backward (B={BATCH}, T={LENGTH}, D={DIM}, {HEADS} heads, S={SEGMENT})")
    print(f"  equal to memory-caching in fp64: largest relative difference {worst:.1e}, outputs and all gradients")
    print("  milliseconds min / median / max")
    print(
        f"  mclab {spread(mine)}   memory-caching {spread(other)}   "
        f"{median(other) / median(mine):.0f} x (at least {LEAST})"
    )
    floor = products()
    print(f"  its matrix products alone {floor:8.2f}, which would be {1e3 * median(other) / floor:.0f} x")

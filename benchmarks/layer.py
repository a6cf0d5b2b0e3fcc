"""The linear GRM layer, forward and backward, against the `memory-caching` package: same weights, same outputs.

Conventions are theirs (benchmarks/peer.py); equality in fp64, outputs and gradients, is checked before any timing.
"""

import torch

from benchmarks.equality import assert_equal
from benchmarks.peer import DIM, HEADS, SEGMENT, Case, Ours, theirs
from benchmarks.timing import both_ways, compare, median, spread

BATCH, LENGTH = 8, 256
LEAST, REPEATS = 50, 7
#: Ours run so often in a turn, so that neither side pays for the caches that the other has filled.
CALLS = 20


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
    case = Case("linear", "grm")
    worst = max(number or 0.0 for number in assert_equal(case, LENGTH))
    peer = theirs(case)
    ours = Ours(peer, case)
    shape = (BATCH, LENGTH, DIM)
    mine_once = both_ways(ours, ours.parameters(), shape)

    def mine_often() -> None:
        for _ in range(CALLS):
            mine_once()

    mine, other = compare((mine_often, both_ways(peer, ours.their_parameters(peer), shape)), REPEATS)
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

"""Titans of depth 2, layer only, forward + backward: against titans-pytorch's NeuralMemory, memory-caching's Titans.

Both layers of the first comparison go from [B, T, D] to [B, T, D] with projections and rates of their own; memories
have depth 2 and expansion 4, a norm and a skip. Ours reads every token with its own weights and has rates a token;
theirs reads with the weights of the chunk before and has a decay and a momentum a chunk.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from benchmarks import process
from benchmarks.counts import counted
from benchmarks.equality import assert_equal
from benchmarks.peer import DIM, HEADS, SEGMENT, Case, Ours, theirs
from benchmarks.timing import both_ways, compare, spread

BATCH, REPEATS = 8, 3
#: Tokens, chunk, heads.
SHAPES = tuple((T, chunk, heads) for T in (256, 1024) for chunk in (64, 16) for heads in (1, 2))
#: How many times faster than theirs each shape and their geometric mean, and than memory-caching.
EACH, MEAN, CACHED = 2.0, 4.0, 50.0
#: Chunks and starts of ours beside memory-caching's.
WAYS = ((1, "checkpoint"), (16, "checkpoint"), (64, "checkpoint"), (16, "restart"), (64, "restart"))
SEGMENTS = 4
#: Ours run so often in a turn, so that neither side pays for the caches that the other has filled.
CALLS = 2


class Row(NamedTuple):
    shape: tuple[int, int, int]
    ours: list[float]
    peers: list[float]
    multiply_adds: tuple[int, int]
    peaks: tuple[int, int]

    @property
    def ratio(self) -> float:
        return self.peers[0] / self.ours[0]


def mclab(length: int, chunk: int, heads: int) -> Any:
    """Our mixer as in a block, without the short convolution, which theirs doesn't have either."""
    from mclab.config.model import MemoryMixer, ModelConfig
    from mclab.models.mixers import CachedMemory
    from mclab.replicas.parameters import initialise

    mixer = MemoryMixer(memory="titans", depth=2, chunk=chunk, aggregate="none")
    made = CachedMemory(1, ModelConfig(dim=DIM, heads=heads, conv=0, mixer=mixer), mixer, length, 1.0)
    initialise(made, [0])
    return made


def layer(side: str, shape: tuple[int, int, int], batch: int, length: int) -> Callable[[], object]:
    """Both ways through the layer of a side, `mclab` or `titans-pytorch`."""
    _, chunk, heads = shape
    if side == "mclab":
        own = mclab(length, chunk, heads)
        return both_ways(own, list(own.parameters()), (1, batch, length, DIM))
    from titans_pytorch import NeuralMemory

    peer = NeuralMemory(DIM, chunk_size=chunk, heads=heads, dim_head=DIM // heads)
    return both_ways(lambda x: peer(x)[0], list(peer.parameters()), (batch, length, DIM))


def peak(side: str, length: int, chunk: int, heads: int) -> int:
    """Bytes above the start that one pass takes at most; what a first small pass loads belongs to the start."""
    layer(side, (length, chunk, heads), 1, 2 * chunk)()
    work = layer(side, (length, chunk, heads), BATCH, length)
    start = process.peak()
    work()
    return process.peak() - start


def row(shape: tuple[int, int, int], peaks: tuple[int, int]) -> Row:
    own, peer = (layer(side, shape, BATCH, shape[0]) for side in ("mclab", "titans-pytorch"))
    ours, peers = compare((often(own), peer), REPEATS, time.process_time)
    return Row(shape, [t / CALLS for t in ours], peers, (counted(own), counted(peer)), peaks)


def often(work: Callable[[], object]) -> Callable[[], object]:
    return lambda: [work() for _ in range(CALLS)]


def against_titans_pytorch() -> None:
    print(f"\nTitans, depth 2, against titans-pytorch, forward + backward (B={BATCH}, D={DIM}), process time, fastest")
    print(f"of {REPEATS}; peak memory above the start; multiply-adds in matrix products, 1e9, counted. Ours / theirs")
    print("     T chunk heads    milliseconds        ratio  aim     peak MB   aim      multiply-adds")
    with ThreadPoolExecutor(2) as pool:  # memory does not mind company
        jobs = [(side, *shape) for shape in SHAPES for side in ("mclab", "titans-pytorch")]
        found = list(pool.map(lambda job: process.alone("titans", "peak", *job), jobs))
    rows = []
    for i, shape in enumerate(SHAPES):
        rows.append(row(shape, (found[2 * i], found[2 * i + 1])))
        print(line(rows[-1]), flush=True)
    mean = math.exp(sum(math.log(each.ratio) for each in rows) / len(rows))
    print(f"  geometric mean {mean:.2f} x   aim {MEAN:.0f} x: {met(mean >= MEAN)}")


def line(each: Row) -> str:
    (T, chunk, heads), (mine, other), (count, peers_count) = each.shape, each.peaks, each.multiply_adds
    return (
        f"  {T:>4} {chunk:>5} {heads:>5} {each.ours[0] * 1e3:>8.1f} / {each.peers[0] * 1e3:>7.1f} {each.ratio:>7.2f} x"
        f"  {EACH:.0f} x: {met(each.ratio >= EACH):<6}"
        f" {mine / 1e6:>5.0f} / {other / 1e6:>5.0f}  {met(mine <= other):<6}"
        f" {count / 1e9:>6.2f} / {peers_count / 1e9:.2f} = {count / peers_count:.2f} x"
    )


def met(reached: bool) -> str:
    return "met" if reached else "MISSED"


def against_memory_caching() -> None:
    length = SEGMENTS * SEGMENT
    print(f"\nTitans + GRM against memory-caching, forward + backward (B={BATCH}, T={length}, D={DIM}, {HEADS} heads,")
    print(
        f"S={SEGMENT}), process time, milliseconds min / median / max; multiply-adds in matrix products, 1e9, counted"
    )
    for mode in ("differentiable", "stopgrad"):
        case = Case("titans", "grm", mode=mode)
        assert_equal(case, length=2 * SEGMENT)
        peer = theirs(case)
        sides = [both_ways(peer, [*peer.parameters(), *peer.backend.start], (BATCH, length, DIM))]
        for chunk, init in WAYS:
            own = Ours(peer, case, chunk, init)
            sides.append(both_ways(own, own.parameters(), (BATCH, length, DIM)))
        other, *mine = compare(tuple(sides), REPEATS, time.process_time)
        count, *counts = (counted(side) for side in sides)
        print(f"  memory-caching ({mode})".ljust(36) + f"{spread(other)}   {count / 1e9:.2f}")
        for (chunk, init), times, own_count in zip(WAYS, mine, counts, strict=True):
            ratio = other[0] / times[0]
            print(
                f"    mclab, chunk {chunk}, {init}".ljust(36) + f"{spread(times)}   {own_count / 1e9:.2f}   "
                f"{ratio:6.1f} x   aim {CACHED:.0f} x: {met(ratio >= CACHED)}"
            )
    print("  chunk 1 with checkpoints is their function (checked in fp64); stopgrad passes no gradients through writes")


def main() -> None:
    against_titans_pytorch()
    against_memory_caching()

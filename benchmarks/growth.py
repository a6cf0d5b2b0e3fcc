"""How time and memory grow with the length, beside what operation counts predict: linear memory and Titans of depth 2.

Each line of the table is one layer, forward + backward, of one process, whose lengths come one after the other.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import process, results
from benchmarks.counts import Count, counted, linear, titans
from benchmarks.timing import both_ways, seconds

BATCH, DIM, HEADS, SEGMENT, CHUNK, CHOSEN = 1, 64, 2, 64, 16, 2
LENGTHS = (256, 512, 1024, 2048, 4096)
MEMORIES, AGGREGATES, INITS = ("linear", "titans"), ("grm", "ssc"), ("restart", "checkpoint")
#: Passes of a length; the fastest counts.
REPEATS = 2
NOTE = (
    f"Layer alone, forward + backward, B={BATCH}, D={DIM}, {HEADS} heads, S={SEGMENT}, titans: depth 2, chunk {CHUNK};"
    f" ssc: k={CHOSEN}. Millions of multiply-adds of the forward pass, predicted by formula (benchmarks/counts.py):"
    " of writing, of reading online and kept memories, and of the rest of the layer (projections, gate); their sum is"
    " checked against what torch multiplies. *Both ways* is counted, forward + backward. *Growth* is that of a row over"
    " the row above it: of the forward count, and of the time. Process time, fastest of"
    f" {REPEATS}; peak memory above the start of the process.\n\n"
    "Kept reads grow as T²/2S, the rest as T. **ssc costs as much as grm**: its read is masked, so kept memories whose"
    f" weight is zero are read all the same; the k={CHOSEN} that are chosen would need T k reads, the last column.\n"
)
HEAD = (
    "memory | aggregate | init | T | write | online | kept | rest | forward | both ways | growth of count | ms |"
    " growth of time | peak MB | kept reads of the chosen alone"
)


class Measured(NamedTuple):
    length: int
    forward: Count
    both: int
    seconds: float
    peak: int


def measure(memory: str, aggregate: str, init: str) -> list[Measured]:
    """One line at every length, from the shortest on; raises where the prediction is not what is multiplied."""
    import torch

    from mclab.config.model import MemoryMixer, ModelConfig
    from mclab.layers import initialise
    from mclab.models.mixers import CachedMemory

    mixer = MemoryMixer.model_validate(
        {
            "memory": memory,
            "aggregate": aggregate,
            "init": init,
            "segment": SEGMENT,
            "chunk": CHUNK,
            "k": CHOSEN,
        }
    )
    layer = CachedMemory(1, ModelConfig(dim=DIM, heads=HEADS, conv=0, mixer=mixer), mixer, LENGTHS[0], 1.0)
    initialise(layer, [0])
    parameters, found = list(layer.parameters()), []
    counted(both_ways(layer, parameters, (1, BATCH, 2 * SEGMENT, DIM)))  # what this loads belongs to the start
    start = process.peak()
    for T in LENGTHS:
        work = both_ways(layer, parameters, (1, BATCH, T, DIM))
        work()
        peak = process.peak() - start
        fastest = min(seconds(work, time.process_time) for _ in range(REPEATS))
        with torch.no_grad():
            x = torch.randn(1, BATCH, T, DIM)
            forward = counted(lambda x=x: layer(x))
        count = predicted(memory, init, T)
        if forward != sum(count):
            raise ArithmeticError(f"{memory} {aggregate} {init} T={T}: {sum(count)} predicted, {forward} multiplied")
        found.append(Measured(T, count, counted(work), fastest, peak))
    return found


def predicted(memory: str, init: str, T: int) -> Count:
    """Multiply-adds of the whole layer's forward pass; ssc and grm do the same ones."""
    K, restart = DIM // HEADS, init == "restart"
    each = linear(T, SEGMENT, K, restart) if memory == "linear" else titans(T, SEGMENT, K, 4 * K, CHUNK, restart)
    # q, k, v, u and the output; three rates a head.
    projections = T * DIM * (5 * DIM + (3 * HEADS if memory == "titans" else 0))
    own = Count(*(BATCH * HEADS * number for number in each))
    return own._replace(around=own.around + BATCH * projections)


def rows() -> Iterator[list[str]]:
    for memory in MEMORIES:
        for aggregate in AGGREGATES:
            for init in INITS:
                line = process.alone("growth", "measure", memory, aggregate, init)
                found = [Measured(T, Count(*count), *rest) for T, count, *rest in line]
                for i, each in enumerate(found):
                    yield [memory, aggregate, init, *cells(each, found[i - 1] if i else None, memory, aggregate)]


def cells(each: Measured, before: Measured | None, memory: str, aggregate: str) -> list[str]:
    K = DIM // HEADS
    one = K * K if memory == "linear" else 8 * K * K
    chosen = BATCH * HEADS * one * sum(min(CHOSEN, t // SEGMENT) for t in range(each.length))
    return [
        str(each.length),
        *(f"{number / 1e6:.1f}" for number in (*each.forward, sum(each.forward), each.both)),
        f"{sum(each.forward) / sum(before.forward):.2f} x" if before else "",
        f"{each.seconds * 1e3:.1f}",
        f"{each.seconds / before.seconds:.2f} x" if before else "",
        f"{each.peak / 1e6:.0f}",
        f"{chosen / 1e6:.1f}" if aggregate == "ssc" else "",
    ]


def main() -> None:
    text = NOTE + "\n" + results.table(HEAD.split(" | "), rows())
    print(f"\n{text}\nwritten to {results.write('growth', text)}")

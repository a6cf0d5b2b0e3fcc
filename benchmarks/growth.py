"""How time and memory grow with the length, beside what operation counts predict: linear memory and Titans of depth 2.

Each line of the table is one layer, forward + backward, of one process, whose lengths come one after the other.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import process, results
from benchmarks.counts import Count, chosen_reads, counted, linear, linear_chosen, sorted_reads, titans
from benchmarks.timing import both_ways, seconds
from mclab.config.model import RULES

BATCH, DIM, HEADS, SEGMENT, CHUNK, CHOSEN = 1, 64, 2, 64, 16, 2
LENGTHS = (256, 512, 1024, 2048, 4096)
MEMORIES, AGGREGATES, INITS = ("linear", "titans"), ("grm", "ssc"), ("restart", "checkpoint")
#: Passes of a length; the fastest counts.
REPEATS = 5
NOTE = (
    f"Layer alone, forward + backward, B={BATCH}, D={DIM}, {HEADS} heads, S={SEGMENT}, titans: depth 2, chunk {CHUNK};"
    f" ssc: k={CHOSEN}. Millions of multiply-adds of the forward pass, predicted by formula (benchmarks/counts.py):"
    " of writing, of reading online and kept memories, and of the rest of the layer (projections, gate); their sum is"
    " checked against what torch multiplies. *Both ways* is counted, forward + backward. *Growth* is that of a row over"
    " the row above it: of the forward count, and of the time. Process time, fastest of"
    f" {REPEATS}; peak memory above the start of the process.\n\n"
    "Kept reads of grm grow as T²/2S. ssc sorts its tokens into blocks by the memory that they chose, so its kept reads"
    " grow as T, as all else but the scores does; *filled up* are the rows of blocks that hold no token. *Reads* says"
    " which it did: where few memories are kept, reading all of them, those not chosen with weight zero, costs less."
    " Each memory, aggregate and init is a process of its own; what both read alike differs by chance.\n"
)
HEAD = (
    "memory | aggregate | init | T | reads | write | online | kept | filled up | rest | forward | both ways |"
    " growth of count | ms | growth of time | of grm's time | peak MB"
)


class Measured(NamedTuple):
    length: int
    reads: str
    forward: Count
    both: int
    seconds: float
    peak: int


def measure(memory: str, aggregate: str, init: str) -> list[Measured]:
    """One line at every length, from the shortest on; raises where the prediction is not what is multiplied."""
    import torch

    from mclab.config.model import MemoryMixer, ModelConfig
    from mclab.models.mixers import CachedMemory
    from mclab.replicas.parameters import initialise

    mixer = MemoryMixer.model_validate(
        {
            "memory": memory,
            "aggregate": aggregate,
            "init": init,
            "segment": SEGMENT,
            "chunk": CHUNK,
            "k": CHOSEN,
            "route": "hard",
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
        forms = predicted(memory, aggregate, init, T)
        reads = next((name for name, count in forms.items() if sum(count) == forward), None)
        if reads is None:
            sums = [sum(count) for count in forms.values()]
            raise ArithmeticError(f"{memory} {aggregate} {init} T={T}: {sums} predicted, {forward} multiplied")
        found.append(Measured(T, reads, forms[reads], counted(work), fastest, peak))
    return found


def predicted(memory: str, aggregate: str, init: str, T: int) -> dict[str, Count]:
    """Multiply-adds of the whole layer's forward pass, for each way of reading that it may choose."""
    K, N, restart = DIM // HEADS, T // SEGMENT, init == "restart"
    rates = RULES[memory].rates * HEADS
    projections = BATCH * T * DIM * (5 * DIM + rates)  # q, k, v, u and the output
    if memory == "linear":
        every, few = linear(T, SEGMENT, K, restart), linear_chosen(T, SEGMENT, K, restart)
    else:
        every = few = titans(T, SEGMENT, K, 4 * K, CHUNK, restart)
    forms = {"all": _layer(every, projections)}
    if aggregate == "ssc":
        # Of a memory that restarts, and of the linear one, the last segment's is there too, though nobody reads it.
        memories = BATCH * HEADS * (N if restart or memory == "linear" else N - 1)
        rows = sorted_reads(BATCH * HEADS * chosen_reads(T, SEGMENT, CHOSEN), memories)
        forms["chosen"] = _layer(few, projections)._replace(kept=rows * _size(memory))
    return forms


def _layer(each: Count, projections: int) -> Count:
    """From one sequence and head to the layer."""
    own = Count(*(BATCH * HEADS * number for number in each))
    return own._replace(around=own.around + projections)


def _size(memory: str) -> int:
    """Entries of one memory's matrices."""
    K = DIM // HEADS
    return K * K if memory == "linear" else 8 * K * K


def rows() -> Iterator[list[str]]:
    grm: dict[tuple[str, str, int], float] = {}
    for memory in MEMORIES:
        for aggregate in AGGREGATES:
            for init in INITS:
                line = process.alone("growth", "measure", memory, aggregate, init)
                found = [Measured(T, reads, Count(*count), *rest) for T, reads, count, *rest in line]
                for i, each in enumerate(found):
                    beside = grm.setdefault((memory, init, each.length), each.seconds)
                    own = cells(each, found[i - 1] if i else None, memory)
                    part = f"{each.seconds / beside:.2f}" if aggregate == "ssc" else ""
                    yield [memory, aggregate, init, *own, part, f"{each.peak / 1e6:.0f}"]


def cells(each: Measured, before: Measured | None, memory: str) -> list[str]:
    write, online, kept, around = each.forward
    wanted = BATCH * HEADS * chosen_reads(each.length, SEGMENT, CHOSEN) * _size(memory)
    filled = kept - wanted if each.reads == "chosen" else 0
    numbers = (write, online, kept, filled, around, sum(each.forward), each.both)
    return [
        str(each.length),
        each.reads,
        *(f"{number / 1e6:.1f}" for number in numbers),
        f"{sum(each.forward) / sum(before.forward):.2f} x" if before else "",
        f"{each.seconds * 1e3:.1f}",
        f"{each.seconds / before.seconds:.2f} x" if before else "",
    ]


def main() -> None:
    head, found = HEAD.split(" | "), list(rows())
    name, time_of = head.index("aggregate"), head.index("of grm's time")
    longest = [row for row in found if row[name] == "ssc" and row[head.index("T")] == str(LENGTHS[-1])]
    shares = ", ".join(f"{row[time_of]} ({row[0]}, {row[head.index('init')]})" for row in longest)
    text = f"{NOTE}\nAt T={LENGTHS[-1]} ssc takes this share of grm's time: {shares}.\n\n{results.table(head, found)}"
    print(f"\n{text}\nwritten to {results.write('growth', text)}")

"""What a token costs while ten thousand are decoded one by one: no cache, the k best of what is kept, all of it."""

import time
from collections.abc import Iterator

import torch

from benchmarks import results
from mclab.nn import Cache, MemoryCaching

DIM, HEADS, SEGMENT, CHOSEN = 256, 4, 64, 2
TOKENS, WINDOW = 10_000, 1_000
#: The token that a tenth of a window are faster than: what else a machine does makes the rest slower.
FASTEST = 10
AGGREGATES = ("none", "ssc", "grm")
HEAD = "tokens | kept memories | none, µs | ssc, µs | grm, µs | grm, floats"


def main() -> None:
    found = {aggregate: list(windows(aggregate)) for aggregate in AGGREGATES}
    rows = []
    for place in range(TOKENS // WINDOW):
        each = [found[aggregate][place] for aggregate in AGGREGATES]
        cache = each[-1][1]
        times = [f"{1e6 * seconds:.0f}" for seconds, _ in each]
        rows.append([f"{place * WINDOW:,} to {cache.tokens:,}", str(cache.segments), *times, f"{cache.floats:,}"])
    ends = {name: own[-1][0] / own[0][0] for name, own in found.items()}
    kept = [found["grm"][place][1].segments for place in (0, -1)]
    a_memory = (found["grm"][-1][0] - found["grm"][0][0]) / (kept[1] - kept[0])
    shares = ", ".join(f"{name} {ratio:.2f} times" for name, ratio in ends.items())
    text = (
        f"`mclab.nn.MemoryCaching`, linear memory, one sequence, D={DIM}, {HEADS} heads, S={SEGMENT}, ssc: k={CHOSEN}; "
        f"fp32, no gradients. Process time of a token of the whole layer: in each {WINDOW:,} a tenth are faster.\n\n"
        f"{results.table(HEAD.split(' | '), rows)}\n"
        f"The last thousand beside the first: {shares}. A kept memory more costs grm {1e6 * a_memory:.1f} µs a token.\n"
    )
    print(f"\n{text}\nwritten to {results.write('decode', text)}")


def windows(aggregate: str) -> Iterator[tuple[float, Cache]]:
    """Seconds of a token in each thousand, and the cache after them."""
    layer = MemoryCaching(
        DIM, HEADS, aggregate=aggregate, segment=SEGMENT, k=CHOSEN, generator=torch.Generator().manual_seed(0)
    )
    x = torch.randn(1, TOKENS, DIM, generator=torch.Generator().manual_seed(1))
    cache = layer.empty_cache(1)
    with torch.no_grad():
        for first in range(0, TOKENS, WINDOW):
            times = []
            for t in range(first, first + WINDOW):
                start = time.process_time()
                _, cache = layer(x[:, t : t + 1], cache=cache)
                times.append(time.process_time() - start)
            yield sorted(times)[WINDOW // FASTEST], cache

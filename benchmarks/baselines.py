"""Every mixer of one shape, layer only, forward + backward: its time against linear attention's, by multiply-adds.

A layer whose products took as long each as those of linear attention's chunk form would have a ratio of one. What is
not a product (exponentials of decays, softmax, a window's mask, memora's hyperbolic functions) is not counted.
"""

import time
from typing import Any, NamedTuple

from benchmarks.counts import counted
from benchmarks.timing import both_ways, compare

BATCH, LENGTH, DIM, HEADS = 8, 1024, 64, 2
REPEATS = 5
#: How much slower than linear attention a product may be.
MOST = 1.5
FIRST = "linear"
#: A row's name, and `model.mixer` by which it is made.
ROWS: dict[str, dict[str, Any]] = {
    FIRST: {"memory": "linear"},
    "retnet": {"memory": "retnet"},
    "mamba2": {"memory": "mamba2"},
    "swla": {"memory": "swla"},
    "vector": {"memory": "vector"},
    "delta": {"memory": "delta"},
    "gated_delta": {"memory": "gated_delta"},
    "rwkv7": {"memory": "rwkv7"},
    "memora, chunk 16": {"memory": "memora", "chunk": 16},
    "memora": {"memory": "memora", "chunk": 64},
    "dla, depth 1": {"memory": "dla", "depth": 1, "chunk": 64},
    "titans, depth 1": {"memory": "titans", "depth": 1, "chunk": 64},
    "titans, depth 2": {"memory": "titans", "depth": 2, "chunk": 64},
    "log_linear, mamba2": {"name": "log_linear", "rule": "mamba2"},
    "log_linear, gated_delta": {"name": "log_linear", "rule": "gated_delta"},
    "attention": {"name": "attention"},
    "attention, window 64": {"name": "attention", "window": 64},
}


class Row(NamedTuple):
    name: str
    seconds: float
    multiply_adds: int

    def against(self, first: "Row") -> float:
        """Time in units of linear attention's, by multiply-adds in the same unit."""
        return self.seconds / first.seconds / (self.multiply_adds / first.multiply_adds)


def layer(mixer: dict[str, Any]) -> Any:
    """Both ways through the mixer as it stands in a block, no cache, no short convolution."""
    from mclab.config.model import ModelConfig
    from mclab.models.mixers import MIXERS
    from mclab.replicas.parameters import initialise

    plain = {"name": "memory", "aggregate": "none"} if "memory" in mixer else {}
    model = ModelConfig.model_validate({"dim": DIM, "heads": HEADS, "conv": 0, "mixer": {**plain, **mixer}})
    made = MIXERS[model.mixer.name](1, model, model.mixer, LENGTH, 1.0)
    initialise(made, [0])
    return both_ways(made, list(made.parameters()), (1, BATCH, LENGTH, DIM))


def main() -> None:
    sides = {name: layer(mixer) for name, mixer in ROWS.items()}
    times = compare(tuple(sides.values()), REPEATS, time.process_time)
    rows = [Row(name, own[0], counted(side)) for (name, side), own in zip(sides.items(), times, strict=True)]
    first = rows[0]
    print(f"\nevery mixer, layer alone, forward + backward (B={BATCH}, T={LENGTH}, D={DIM}, {HEADS} heads, no cache),")
    print(f"process time, fastest of {REPEATS}; multiply-adds in matrix products, 1e9, counted; chunk 64 unless said")
    print("  mixer                        ms   ns/token   multiply-adds   of linear's   time of linear's   ratio")
    for row in rows:
        count, spent = row.multiply_adds / first.multiply_adds, row.seconds / first.seconds
        ratio = row.against(first)
        print(
            f"  {row.name:24} {1e3 * row.seconds:6.1f} {1e9 * row.seconds / BATCH / LENGTH:10.0f} "
            f"{row.multiply_adds / 1e9:15.2f} {count:13.2f} {spent:18.2f} {ratio:7.2f}"
            f"{'' if ratio <= MOST else f'  above {MOST}'}"
        )

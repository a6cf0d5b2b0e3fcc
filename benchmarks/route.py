"""What each route of SSC costs a step of training: time and peak memory, beside GRM's.

A whole step at 64 tokens, of the model that `ablations/route.yaml` trains; at 1,024 and 4,096 a layer, both ways.
"""

import time
from collections.abc import Callable, Iterator

from benchmarks import process, results
from benchmarks.timing import both_ways, seconds

MEMORIES, WAYS = ("linear", "titans"), ("grm", "hard", "explore", "straight_through")
DIM, HEADS, SEGMENT, LENGTHS = 64, 2, 64, (1024, 4096)
REPEATS = 5
NOTE = (
    "T=64: a step of training, forward, backward, clipping and AdamW, of the model of ablations/route.yaml (B=32,"
    " D=16, two layers, S=8). T=1024 and 4096: a layer, forward + backward,"
    f" B=1, D={DIM}, {HEADS} heads, S={SEGMENT}. titans: depth 2, chunk 16 (8 at T=64). k=2. Draws are made anew in"
    " each pass. `annealed` costs what grm does, then what explore does. Process time, one thread, fastest of"
    f" {REPEATS}; peak memory above the start of the process; *of hard* and *of grm* are shares of their time. Each"
    " line is a process.\n"
)
HEAD = "memory | T | route | ms | of hard | of grm | peak MB"


def step(memory: str, way: str) -> tuple[float, int]:
    """Seconds of a step of training at 64 tokens, and bytes at the peak."""
    import torch

    from mclab.config.run import RunConfig
    from mclab.tasks import TASKS
    from mclab.train.evaluate import loss_per_replica
    from mclab.train.pack import Pack
    from mclab.train.routing import Routing

    task = {"vocab": 128, "length": 64, "pairs": [4, 8, 16], "spread": "uniform"}
    model = {"dim": 16, "mixer": {"memory": memory, "segment": 8, **_keys(way)}}
    run = RunConfig.model_validate({"task": task, "model": model, "train": {"batch": 32}})
    pack = Pack([run], torch.device("cpu"))
    data = TASKS["mqar"].batch(run.task, [0], "train", 0, 32, "cpu")
    routing = Routing(pack.model, run, [0], torch.device("cpu"))

    def work() -> None:
        with routing.at(run.train.steps, 64):
            loss = loss_per_replica(pack.model(data.tokens, data.positions), data.answers)
        pack.update(loss, 1, 0.1)

    return _measured(work, 4 * REPEATS)


def layer(memory: str, way: str, length: int) -> tuple[float, int]:
    """Seconds of a layer, forward and backward, and bytes at the peak."""
    import torch

    from mclab.caching.gate_output import RouteStep
    from mclab.config.model import MemoryMixer, ModelConfig
    from mclab.models.mixers import CachedMemory
    from mclab.replicas.parameters import initialise
    from mclab.tasks.stream import sample_keys, words

    mixer = MemoryMixer.model_validate({"memory": memory, "segment": SEGMENT, **_keys(way)})
    made = CachedMemory(1, ModelConfig(dim=DIM, heads=HEADS, conv=0, mixer=mixer), mixer, length, 1.0)
    initialise(made, [0])
    keys = sample_keys("route", [0], 0, HEADS, torch.device("cpu"))[0]
    passes = both_ways(made, list(made.parameters()), (1, 1, length, DIM))

    def work() -> None:
        made.caching.route_step = RouteStep(False, words(keys, length) if way == "explore" else None)
        passes()

    return _measured(work, REPEATS)


def _keys(way: str) -> dict[str, str]:
    return {"aggregate": "grm"} if way == "grm" else {"aggregate": "ssc", "route": way}


def _measured(work: Callable[[], None], repeats: int) -> tuple[float, int]:
    start = process.peak()
    work()
    return min(seconds(work, time.process_time) for _ in range(repeats)), process.peak() - start


def rows() -> Iterator[list[str]]:
    for memory in MEMORIES:
        for length in (64, *LENGTHS):
            found = {}
            for way in WAYS:
                given = ("step", memory, way) if length == 64 else ("layer", memory, way, length)
                found[way] = process.alone("route", *given)
            for way, (spent, peak) in found.items():
                shares = [f"{spent / found[other][0]:.2f}" for other in ("hard", "grm")]
                yield [memory, str(length), way, f"{spent * 1e3:.1f}", *shares, f"{peak / 1e6:.0f}"]


def main() -> None:
    text = f"{NOTE}\n{results.table(HEAD.split(' | '), rows())}"
    print(f"\n{text}\nwritten to {results.write('route', text)}")

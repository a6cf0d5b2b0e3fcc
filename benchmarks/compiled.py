"""Training steps through torch.compile: against eager steps, and the time to compile, cold and from graphs on disk.

`python -m benchmarks.compiled gating 1` measures one case in this process, with a pack of one run. All times are
processor seconds, with those of the C++ compiler, so that what else the machine does counts little.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks import process

#: By the name of a case: the mixer's keys, and the sequences in a batch. Width 16, 64 tokens, segments of 8.
CASES: dict[str, tuple[dict[str, object], int]] = {
    "gating": ({}, 16),
    "titans": ({"memory": "titans", "chunk": 8}, 32),
    "delta": ({"memory": "delta"}, 16),
}
REPEATS = 60


def main() -> None:
    print("\ntraining steps, eager and compiled, processor milliseconds min / median / max", flush=True)
    for case in CASES:
        for replicas in (1, 4):
            with tempfile.TemporaryDirectory() as folder:
                for state in ("cold", "warm"):
                    print(f"  {case}, {replicas} in a pack, {state}", flush=True)
                    own = {"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
                    command = [sys.executable, "-m", "benchmarks.compiled", case, str(replicas)]
                    subprocess.run(command, env={**os.environ, **own}, check=True)


def measure(case: str, replicas: int) -> None:
    """Compile the step of a case, then let eager and compiled steps of two packs take turns."""
    import torch

    from benchmarks.timing import compare, median, spread
    from mclab.config.parse import parse_run
    from mclab.kernels.compile_mode import compiling
    from mclab.tasks import TASKS
    from mclab.train.cpu_settings import prepare
    from mclab.train.pack import Pack
    from mclab.train.routing import Routing
    from mclab.train.step import Step

    prepare("cpu")
    mixer, batch = CASES[case]
    run = parse_run({
        "task": {"vocab": 128, "length": 64, "pairs": [4, 8, 16], "spread": "uniform"},
        "model": {"dim": 16, "mixer": {"segment": 8, **mixer}},
        "train": {"steps": 2000, "batch": batch},
    })  # fmt: skip
    seeds, cpu = list(range(replicas)), torch.device("cpu")
    data = TASKS["mqar"].batch(run.task, seeds, "train", 0, batch, cpu)

    def made(compiled: bool) -> Step:
        pack = Pack([run.model_copy(update={"seed": seed}) for seed in seeds], cpu)
        with compiling(compiled):
            return Step(pack, Routing(pack.model, run, seeds, cpu), cpu)

    eager, compiled = made(False), made(True)
    eager(data, 1)
    before = _spent()
    compiled(data, 1)
    first = _spent() - before
    off = (eager.loss_R - compiled.loss_R).abs().max().item(), (eager.norm_R - compiled.norm_R).abs().max().item()
    count = iter(range(2, run.train.steps))

    def both(step: Step) -> None:
        step(data, next(count))

    times, others = compare((lambda: both(eager), lambda: both(compiled)), REPEATS, time.process_time)
    print(f"    first compiled step {first:.1f} s ({compiled.loss.state}); ", end="")
    print("its loss and gradient norm differ from the eager ones by {:.0e} and {:.0e} at most".format(*off))
    print(f"    eager {spread(times)}   compiled {spread(others)}   {median(times) / median(others):.2f} x", flush=True)
    again, start = made(True), time.process_time()
    again(data, 1)
    print(f"    first step of the next pack of this shape {time.process_time() - start:.2f} s", flush=True)


def _spent() -> float:
    """Processor seconds of this process, and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    process.prepare()
    measure(sys.argv[1], int(sys.argv[2]))

"""How much memory a run takes: what the dry run says beforehand, and what the process had resident at most."""

from collections.abc import Iterator
from typing import Any

from benchmarks import process, results

#: Keys of each run; short, since memory does not grow with the steps.
SHAPES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "width 128": {"task.length": 512, "train.batch": 16, "model.dim": 128, "model.heads": 4, "model.mixer.segment": 64},
    "segments of 2": {"task.length": 512, "train.batch": 8, "model.dim": 64, "model.mixer.segment": 2},
    "long": {"task.length": 4096, "train.batch": 1, "model.dim": 64, "model.mixer.segment": 64},
    "titans": {
        "task.length": 512,
        "train.batch": 8,
        "model.dim": 64,
        "model.heads": 2,
        "model.mixer.memory": "titans",
        "model.mixer.segment": 32,
        "model.mixer.chunk": 8,
    },
    "titans uncached": {
        "task.length": 1024,
        "train.batch": 8,
        "model.dim": 64,
        "model.mixer.memory": "titans",
        "model.mixer.aggregate": "none",
    },
    "dla soup log": {
        "task.length": 256,
        "train.batch": 8,
        "model.dim": 64,
        "model.mixer.memory": "dla",
        "model.mixer.aggregate": "soup",
        "model.mixer.segmentation": "log",
    },
    "gated delta": {"task.length": 512, "train.batch": 8, "model.dim": 64, "model.mixer.memory": "gated_delta"},
    "rwkv7 checkpoint": {
        "task.length": 512,
        "train.batch": 8,
        "model.dim": 64,
        "model.mixer.memory": "rwkv7",
        "model.mixer.init": "checkpoint",
        "model.mixer.segment": 64,
    },
    "swla ssc": {
        "task.length": 512,
        "train.batch": 8,
        "model.dim": 64,
        "model.mixer.memory": "swla",
        "model.mixer.aggregate": "ssc",
        "model.mixer.segment": 64,
    },
    "memora": {"task.length": 256, "train.batch": 8, "model.dim": 32, "model.mixer.memory": "memora"},
    "attention": {"task.length": 1024, "train.batch": 8, "model.dim": 128, "model.mixer.name": "attention"},
    "log linear": {"task.length": 1024, "train.batch": 4, "model.dim": 64, "model.mixer.name": "log_linear"},
    "many words": {"task.name": "ar", "task.vocab": 8192, "task.length": 128, "train.batch": 16},
    "parameters": {"model.dim": 1024, "model.layers": 4, "model.heads": 16, "train.batch": 2},
    # Not among those that the constants of mclab/runner/memory.py were fitted to.
    "retnet residual": {
        "task.length": 512,
        "train.batch": 8,
        "model.dim": 128,
        "model.heads": 4,
        "model.mixer.memory": "retnet",
        "model.mixer.aggregate": "residual",
    },
    "titans depth 3": {
        "task.length": 256,
        "train.batch": 8,
        "model.dim": 32,
        "model.mixer.memory": "titans",
        "model.mixer.depth": 3,
        "model.mixer.init": "checkpoint",
        "model.mixer.segment": 16,
    },
    "delta ssc": {
        "task.length": 1024,
        "train.batch": 2,
        "model.dim": 64,
        "model.heads": 2,
        "model.mixer.memory": "delta",
        "model.mixer.aggregate": "ssc",
        "model.mixer.segment": 16,
    },
    "hybrid": {
        "task.length": 512,
        "train.batch": 8,
        "model.dim": 64,
        "model.mixer.hybrid": "mal",
        "model.mixer.window": 32,
    },
    "long exam": {"task.length": 128, "train.batch": 4, "model.dim": 64, "eval.task": {"length": 4096}},
    "fixed states": {
        "task.length": 512,
        "train.batch": 8,
        "model.dim": 64,
        "model.layers": 4,
        "model.mixer.aggregate": "none",
        "model.mixer.memory": "gated_delta",
    },
}
NOTE = (
    "Peak resident memory of a process that trains two steps and is scored, beside what `mclab.runner.memory` says of "
    "the run from its keys alone, in MiB. The last shapes were not used to fit its constants.\n"
)
HEAD = "run | parameters | activations | logits | sequences | process | estimate | measured | measured / estimate"


def run_of(keys: dict[str, Any]) -> Any:
    """The run that dotted keys describe, a few steps long."""
    from mclab.plan.grid import plan_from

    short = {"train.steps": 2, "eval.every": 2, "eval.valid": 64, "eval.test": 64}
    plan = plan_from({"base": {**short, **keys}}, "memory")
    return plan.cells[0].candidates[0].runs[0]


def measure(name: str) -> int:
    """Bytes that the process of this run had at most."""
    from mclab.train import train_pack

    train_pack([run_of(SHAPES[name])], device="cpu")
    return process.peak()


def rows() -> Iterator[list[str]]:
    from mclab.runner.memory import PROCESS, memory

    for name, keys in SHAPES.items():
        said = memory(run_of(keys))
        estimate, measured = said.total + PROCESS, process.alone("memory", "measure", name)
        numbers = [*said, PROCESS, estimate, measured]
        yield [name, *(f"{number / 2**20:.0f}" for number in numbers), f"{measured / estimate:.2f}"]


def main() -> None:
    text = f"{NOTE}\n{results.table(HEAD.split(' | '), rows())}"
    print(f"\n{text}\nwritten to {results.write('memory', text)}")

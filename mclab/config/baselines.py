"""The baseline of each key: the value that it has if a stored run or a run's id does not name it.

Each new key gets a baseline here, which never changes afterwards. An id holds the keys whose values differ from their
baselines. So a default may change without changing any id: a run with the new default then names the key in its id, and
an id without the key still means the old default. The baseline of a new key is the value that reproduces the behaviour
of the code before the key existed, whatever its default is.
"""

from collections.abc import Mapping
from typing import Any

from mclab.config.strict import Leaf

#: Maps a section of a run, or the name of its task or mixer, to a mapping from key to baseline.
BASELINES: dict[str, dict[str, Leaf]] = {
    "run": {"seed": 0},
    "train": {
        "steps": 600,
        "batch": 64,
        "lr": 0.01,
        "weight_decay": 0.1,
        "clip": 1.0,
        "warmup": 0.1,
        "examples": None,
        "task": (),
        "stop_at": None,
        "precision": "fp32",
        "checkpoint_every": None,
    },
    "eval": {
        "every": 50,
        "valid": 256,
        "test": 1024,
        "task": (),
        "post_training": None,
        "post_segment": None,
        "post_mix": "outputs",
    },
    "model": {"dim": 32, "layers": 2, "heads": 1, "mlp": 2, "position": "none", "conv": 4, "pattern": ()},
    "memory": {
        "name": "memory",
        "memory": "linear",
        "depth": 2,
        "chunk": 16,
        "max_lr": 1.0,
        "decay_to": "init",
        "memory_norm": "rms",
        "segment": 8,
        "segmentation": "constant",
        "segment_lengths": (),
        "aggregate": "grm",
        "gate": "context",
        "gate_activation": "softmax",
        "connector": "own",
        "init": "restart",
        "pool": "mean",
        "pool_of": "keys",
        "scale": None,
        "k": 2,
        "renormalise": True,
        "route": "hard",
        "qk_norm": True,
        "out_gate": False,
        "hybrid": "none",
        "window": 16,
        "memory_args": (),
        "gate_args": (),
        "aggregate_args": (),
        "versions": (),
    },
    "attention": {"name": "attention", "window": None, "rotary": None, "conv": None},
    "log_linear": {"name": "log_linear", "rule": "mamba2", "qk_norm": True, "out_gate": False},
    "conv": {"name": "conv", "kernel": 3},
    "module": {"name": "module", "module": "", "args": (), "version": 1},
    "mqar": {
        "name": "mqar",
        "vocab": 64,
        "length": 64,
        "pairs": (4, 8, 16),
        "filler": "zero",
        "distractors": False,
        "spread": "power",
    },
    "ar": {"name": "ar", "vocab": 20, "length": 40, "loss": "all"},
    "niah": {
        "name": "niah",
        "vocab": 64,
        "length": 128,
        "preset": "niah1",
        "depth": (0, 25, 50, 75, 100),
        "haystack": None,
        "key": None,
        "value": None,
        "needles": None,
        "values": None,
        "asked": None,
    },
    "text": {"name": "text", "vocab": 256, "length": 128, "corpus": None, "sha256": ""},
    "module task": {"name": "module", "vocab": 64, "length": 64, "module": "", "args": (), "version": 1},
    "facts": {"name": "facts", "vocab": 64, "length": 64, "facts": 256},
}

#: The name in `BASELINES` of the user's own task: its real name, `module`, is also the name of a mixer.
_OWN_TASK = "module task"


def baseline(of: str, key: str) -> Any:
    """Return the baseline of the key `key` of the section, task or mixer `of`."""
    return BASELINES[of][key]


def all_baselines(task: str, mixer: str) -> dict[str, Leaf]:
    """Return {dotted path: baseline} for all keys of a run with this task and mixer."""
    asked = _OWN_TASK if task == "module" else task
    owners = {"": "run", "train.": "train", "eval.": "eval", "model.": "model", "task.": asked, "model.mixer.": mixer}
    return {f"{prefix}{key}": value for prefix, of in owners.items() for key, value in BASELINES[of].items()}


def completed(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dotted keys of a stored run, with baselines for the keys that did not exist when it was stored.

    If the task or the mixer is unknown, the keys are returned unchanged; the schema refuses them later.
    """
    task, mixer = stored.get("task.name", "mqar"), stored.get("model.mixer.name", "memory")
    if not all(isinstance(name, str) and name in BASELINES for name in (task, mixer)):
        return dict(stored)
    return {**all_baselines(task, mixer), **stored}

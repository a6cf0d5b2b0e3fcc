"""Stored runs to look at."""

from functools import cache
from pathlib import Path
from typing import Any

from mclab.config.ids import run_id
from mclab.config.options import Keep
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.store import Store
from mclab.train import train_pack

SMALL = {
    "task": {"vocab": 16, "length": 16, "pairs": [1, 2]},
    "model": {"dim": 8, "layers": 1, "mixer": {"segment": 4}},
    "train": {"steps": 2, "batch": 8},
    "eval": {"valid": 8, "test": 16, "every": 2},
}


def small_run(seed: int = 0, **rooms: dict[str, Any]) -> RunConfig:
    """A run that trains in a tenth of a second; keys of each room can be changed, and left out with None."""
    merged = {room: {**SMALL[room], **rooms.get(room, {})} for room in SMALL}
    merged["task"] = {key: value for key, value in merged["task"].items() if value is not None}
    return RunConfig.model_validate({"seed": seed, **merged})


@cache
def trained(run: RunConfig) -> Outcome:
    """Its outcome, weights included."""
    return train_pack([run], device="cpu", keep=Keep(weights=True))[0]


def stored(folder: Path, run: RunConfig, outcome: Outcome | None = None) -> str:
    """Put a run into a folder; by default as it comes out of training, with weights. Returns its id."""
    with Store(folder) as store:
        store.put(run, outcome or trained(run))
    return run_id(run)

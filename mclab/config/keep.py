"""What training keeps beside its outcome; torch-free and small, since it travels to the workers."""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"([0-9a-f]{16})\.(\d+)\.safetensors")


@dataclass(frozen=True)
class Keep:
    """`checkpoints` is the folder for the state of runs that train (`None`: nothing is kept, nothing is resumed).

    On a cluster it must be a folder that the workers see under the same path. `weights` asks for `Outcome.weights`.
    """

    checkpoints: Path | None = None
    weights: bool = False


def checkpoint(folder: Path, run: str, step: int) -> Path:
    """Where the state after so many steps of the run with this id stands."""
    return folder / f"{run}.{step}.safetensors"


def checkpoints(folder: Path) -> dict[str, dict[int, Path]]:
    """Run id -> step -> file, by the files' names alone; empty where there is no folder. Raises `OSError`."""
    found: dict[str, dict[int, Path]] = defaultdict(dict)
    for path in folder.iterdir() if folder.is_dir() else ():
        if name := _NAME.fullmatch(path.name):
            found[name[1]][int(name[2])] = path
    return dict(found)

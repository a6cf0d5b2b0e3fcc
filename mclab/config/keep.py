"""What training keeps beside its outcome; torch-free and small, since it travels to the workers."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Keep:
    """`checkpoints` is the folder for the state of runs that train (`None`: nothing is kept, nothing is resumed).

    On a cluster it must be a folder that the workers see under the same path. `weights` asks for `Outcome.weights`.
    """

    checkpoints: Path | None = None
    weights: bool = False


def checkpoint(folder: Path, run: str) -> Path:
    """Where the state of the run with this id stands."""
    return folder / f"{run}.safetensors"

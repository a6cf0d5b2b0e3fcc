"""The state of a pack in the middle of its training: one file a run, and back.

What is resumed ends as it would have ended without a stop, bit for bit, on the same device and version of torch.
Shapes: R replicas, P trained numbers, L steps since the last look.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mclab.config.keep import checkpoint
from mclab.config.outcome import Score
from mclab.config.run import SCIENCE, RunConfig, run_id
from mclab.files import write_whole
from mclab.train.replicas import Pack
from mclab.train.tensors import read, to_bytes


@dataclass
class Log:
    """What a replica's training has shown so far; `valid` are the scores of the last look."""

    curve: list[dict[str, Any]] = field(default_factory=list)
    valid: dict[str, Score] = field(default_factory=dict)
    steps_to_99: int | None = None
    stopped_at: int | None = None


@dataclass
class Course:
    """How far a pack is: its last step, each replica's log, the losses [R] since the last look, seconds spent."""

    logs: list[Log]
    step: int = 0
    losses: list[Tensor] = field(default_factory=list)
    training_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True)
class _Read:
    """A replica's file."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def save(folder: Path, pack: Pack, course: Course) -> None:
    """Write the state of every replica, each file whole or not at all. Raises `OSError`.

    Makes the folder, not what it lies in: a run folder that this machine does not have is not made up.
    """
    folder.mkdir(exist_ok=True)
    losses_LR = torch.stack(course.losses) if course.losses else pack.values_RP.new_empty(0, len(pack.runs))
    alive, diverged = pack.alive_R.tolist(), pack.diverged_R.tolist()
    for r, run in enumerate(pack.runs):
        tensors = {**{name: state_RP[r] for name, state_RP in _state(pack).items()}, "losses": losses_LR[:, r]}
        facts = {
            **_origin(run, pack),
            "step": course.step,
            "count": pack.optimiser.count,
            "alive": alive[r],
            "diverged": diverged[r],
            "training_s": course.training_s,
            "wall_s": course.wall_s,
            "log": asdict(course.logs[r]),
        }
        write_whole(checkpoint(folder, run_id(run)), to_bytes(tensors, facts))


def restore(folder: Path, pack: Pack) -> Course | str | None:
    """Put the pack where its files left it, and how far that is; the reason where the files there are do not do.

    `None` where there are none. The pack is as it was unless a `Course` comes back.
    """
    paths = [checkpoint(folder, run_id(run)) for run in pack.runs]
    missing = [path for path in paths if not path.exists()]
    if len(missing) == len(paths):
        return None
    if missing:
        return f"{len(missing)} of the {len(paths)} runs that train together have no checkpoint; started over"
    found = []
    for path, run in zip(paths, pack.runs, strict=True):
        try:
            found.append(_checked(path, run, pack))
        except (ValueError, OSError) as error:
            return f"{path}: {error}; started over"
    if len({each.facts["step"] for each in found}) > 1:
        return "the checkpoints of the runs that train together are of different steps; started over"
    return _resume(pack, found)


def _state(pack: Pack) -> dict[str, Tensor]:
    return {"values": pack.values_RP, "mean": pack.optimiser.mean, "square": pack.optimiser.square}


def _origin(run: RunConfig, pack: Pack) -> dict[str, Any]:
    """What a checkpoint must agree in: everything else that matters is in the run's id."""
    device = pack.values_RP.device.type
    return {"run_id": run_id(run), "science": SCIENCE, "torch": torch.__version__, "device": device}


def _checked(path: Path, run: RunConfig, pack: Pack) -> _Read:
    """Raises `ValueError` with the reason why a file is not this run's checkpoint."""
    tensors, facts = read(path)
    for key, own in _origin(run, pack).items():
        if facts.get(key) != own:
            raise ValueError(f"is of {key} {facts.get(key)}, not {own}")
    for name, state_RP in _state(pack).items():
        if name not in tensors or (tensors[name].shape, tensors[name].dtype) != (state_RP[0].shape, state_RP.dtype):
            raise ValueError(f"holds other {name} than this model's")
    try:
        _log(facts["log"])
        numbers = [facts[key] for key in ("step", "count", "alive", "diverged", "training_s", "wall_s")]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("is not mclab's") from error
    if not all(isinstance(number, int | float) for number in numbers) or "losses" not in tensors:
        raise ValueError("is not mclab's")
    return _Read(tensors, facts)


@torch.no_grad()
def _resume(pack: Pack, found: Sequence[_Read]) -> Course:
    for name, state_RP in _state(pack).items():
        for r, each in enumerate(found):
            state_RP[r].copy_(each.tensors[name])
    first, device = found[0].facts, pack.values_RP.device
    pack.optimiser.count = first["count"]
    pack.alive_R = torch.tensor([each.facts["alive"] for each in found], device=device)
    pack.diverged_R = torch.tensor([each.facts["diverged"] for each in found], device=device)
    losses_LR = torch.stack([each.tensors["losses"] for each in found], dim=1).to(device)
    return Course(
        logs=[_log(each.facts["log"]) for each in found],
        step=first["step"],
        losses=list(losses_LR),
        training_s=first["training_s"],
        wall_s=first["wall_s"],
    )


def _log(data: dict[str, Any]) -> Log:
    valid = {name: Score(**score) for name, score in data["valid"].items()}
    return Log(data["curve"], valid, data["steps_to_99"], data["stopped_at"])

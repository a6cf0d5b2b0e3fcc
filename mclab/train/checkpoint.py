"""Write the state of a pack in the middle of its training as checkpoints, one file per run and step, and restore it.

A resumed run ends with exactly the bits of an uninterrupted one, on the same device and versions of mclab and torch. Of
a user's own module only the `version` key is compared, since it is in the run's id; other changes go unnoticed. Shapes:
R replicas, P parameters of one run, L steps since the last evaluation.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import mclab
from mclab.atomic_files import write_whole
from mclab.config.ids import SCIENCE, run_id
from mclab.config.options import checkpoint, checkpoints
from mclab.config.outcome import Score
from mclab.config.run import RunConfig
from mclab.train.pack import Pack
from mclab.train.tensor_file import read, to_bytes


@dataclass
class Log:
    """What was measured so far while a replica trained; `valid` holds the scores of its last evaluation."""

    curve: list[dict[str, Any]] = field(default_factory=list)
    valid: dict[str, Score] = field(default_factory=dict)
    steps_to_99: int | None = None
    stopped_at: int | None = None
    pruned_at: int | None = None


@dataclass
class Course:
    """The progress of a pack's training.

    `logs` has one log per replica, `step` is the last step, `losses` has one tensor [R] for each step since the last
    evaluation; the seconds are those spent so far.
    """

    logs: list[Log]
    step: int = 0
    losses: list[Tensor] = field(default_factory=list)
    training_s: float = 0.0
    wall_s: float = 0.0


@dataclass(frozen=True)
class _Read:
    """The content of one replica's file."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def save(folder: Path, pack: Pack, course: Course) -> None:
    """Write the state of every replica, then remove the checkpoints of other steps. Raises `OSError`.

    If the process is killed in between, there is still a step for which all replicas have a file; after an error no new
    file is left. The folder is created if it is missing, but its parent is not: a run folder that does not exist on
    this machine is never created.
    """
    folder.mkdir(exist_ok=True)
    names = [run_id(run) for run in pack.runs]
    paths = [checkpoint(folder, name, course.step) for name in names]
    try:
        for path, data in zip(paths, _files(pack, course), strict=True):
            write_whole(path, data)
    except OSError:  # on a full disk, the files of an incomplete step would accumulate
        with suppress(OSError):
            for path in paths:
                path.unlink(missing_ok=True)
        raise
    there = checkpoints(folder)
    for name, path in zip(names, paths, strict=True):
        for other in there.get(name, {}).values():
            if other.name != path.name:
                other.unlink(missing_ok=True)


def _files(pack: Pack, course: Course) -> Iterator[bytes]:
    losses_LR = torch.stack(course.losses) if course.losses else pack.values_RP.new_empty(0, len(pack.runs))
    alive, diverged, count = pack.alive_R.tolist(), pack.diverged_R.tolist(), int(pack.optimiser.count)
    for r, run in enumerate(pack.runs):
        tensors = {**{name: state_RP[r] for name, state_RP in _state(pack).items()}, "losses": losses_LR[:, r]}
        facts = {
            **_origin(run, pack),
            "step": course.step,
            "count": count,
            "alive": alive[r],
            "diverged": diverged[r],
            "training_s": course.training_s,
            "wall_s": course.wall_s,
            "log": asdict(course.logs[r]),
        }
        yield to_bytes(tensors, facts)


def restore(folder: Path, pack: Pack) -> Course | str | None:
    """Restore the pack to the newest step for which all its runs have a checkpoint, and return its `Course`.

    Return the reason if the checkpoints cannot be used, and `None` if there are none; then the pack is unchanged.
    """
    try:
        there = checkpoints(folder)
    except OSError as error:
        return f"training started over, because {folder} cannot be read: {error.strerror or error}"
    files = [there.get(run_id(run), {}) for run in pack.runs]
    missing = files.count({})
    if missing == len(files):
        return None
    if missing:
        return (
            f"training started over, because {missing} of the {len(files)} runs that train together have no checkpoint"
        )
    step = max(set(files[0]).intersection(*files), default=None)
    if step is None:
        return "training started over, because the checkpoints of the runs that train together are of different steps"
    found = []
    for steps, run in zip(files, pack.runs, strict=True):
        try:
            found.append(_checked(steps[step], {**_origin(run, pack), "step": step}, pack))
        except (ValueError, OSError) as error:
            return f"training started over, because {steps[step]} cannot be used: {error}"
    return _resume(pack, found)


def _state(pack: Pack) -> dict[str, Tensor]:
    return {"values": pack.values_RP, "mean": pack.optimiser.mean, "square": pack.optimiser.square}


def _origin(run: RunConfig, pack: Pack) -> dict[str, Any]:
    """Return the facts in which a checkpoint must agree with this run; the run's id stands for everything else."""
    device = pack.values_RP.device.type
    versions = {"science": SCIENCE, "mclab": mclab.__version__, "torch": torch.__version__}
    return {"run_id": run_id(run), **versions, "device": device}


def _checked(path: Path, agreed: dict[str, Any], pack: Pack) -> _Read:
    """Read the checkpoint of one replica.

    Raises `ValueError` with the reason if its metadata differ from `agreed`, its tensors do not fit the model, or it
    is damaged.
    """
    tensors, facts = read(path)
    for key, own in agreed.items():
        if facts.get(key) != own:
            raise ValueError(f"it was written with {key} {facts.get(key)}, but this run has {own}")
    for name, state_RP in _state(pack).items():
        if name not in tensors or (tensors[name].shape, tensors[name].dtype) != (state_RP[0].shape, state_RP.dtype):
            raise ValueError(f"its tensor {name} does not fit this model")
    try:
        _log(facts["log"])
        numbers = [facts[key] for key in ("count", "alive", "diverged", "training_s", "wall_s")]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("it is not a checkpoint of mclab") from error
    if not all(isinstance(number, int | float) for number in numbers) or "losses" not in tensors:
        raise ValueError("it is not a checkpoint of mclab")
    return _Read(tensors, facts)


@torch.no_grad()
def _resume(pack: Pack, found: Sequence[_Read]) -> Course:
    for name, state_RP in _state(pack).items():
        for r, each in enumerate(found):
            state_RP[r].copy_(each.tensors[name])
    first, device = found[0].facts, pack.values_RP.device
    pack.optimiser.count.fill_(first["count"])
    pack.alive_R.copy_(torch.tensor([each.facts["alive"] for each in found]))
    pack.diverged_R.copy_(torch.tensor([each.facts["diverged"] for each in found]))
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
    return Log(data["curve"], valid, data["steps_to_99"], data["stopped_at"], data.get("pruned_at"))

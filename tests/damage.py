"""Flips bits in the files of a run folder, one at a time, and tells which flips nobody noticed."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from mclab.config.ids import run_id
from mclab.config.options import Keep, checkpoint
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.store import Records, Store
from mclab.train import train_pack
from mclab.train.checkpoint import Course, restore
from mclab.train.pack import Pack
from mclab.train.weights import load_model

#: A reader gives what it has read, or `None` where it has said that the file is damaged.
Read = Callable[[], Any]


def trained(folder: Path, run: RunConfig) -> None:
    """A run folder with the run's record, curve and weights, and beside them its last checkpoint."""
    (outcome,) = train_pack([run], device="cpu", keep=Keep(folder / "checkpoints", weights=True))
    kept = checkpoint(folder / "checkpoints", run_id(run), run.train.steps)
    state = kept.read_bytes()
    with Store(folder) as store:
        store.put(run, outcome)
    kept.parent.mkdir()
    kept.write_bytes(state)


def readers(folder: Path, run: RunConfig) -> dict[str, tuple[Path, Read]]:
    """Each kind of file, with what reads it when a command goes on, shows or answers."""
    name = run_id(run)
    pack = Pack([run], torch.device("cpu"))

    def record() -> Any:
        return Records(folder, say=lambda line: None).lookup(name)

    def curve() -> Any:
        said: list[str] = []
        looks = Records(folder, say=said.append).curve(name)
        return None if said else looks

    def state() -> Any:
        course = restore(folder / "checkpoints", pack)
        if not isinstance(course, Course):
            return None
        moments = (pack.values_RP, pack.optimiser.mean, pack.optimiser.square, *course.losses)
        return repr((course.logs, course.step, pack.optimiser.count, [each.tolist() for each in moments]))

    def weights() -> Any:
        try:
            model, config = load_model(folder, name)
        except ConfigError:
            return None
        return config, {name: values.tolist() for name, values in model.named_parameters()}

    return {
        "record": (folder / "records" / f"{name}.json", record),
        "curve": (folder / "curves" / f"{name}.ndjson", curve),
        "checkpoint": (checkpoint(folder / "checkpoints", name, run.train.steps), state),
        "weights": (Records(folder).weights(name), weights),
    }


def unnoticed(path: Path, read: Read, flips: int, seed: int = 0) -> Iterator[int]:
    """Which of so many random bits of the file, flipped alone, changed what is read without a word."""
    whole, right, chance = path.read_bytes(), read(), random.Random(seed)
    assert right is not None
    for _ in range(flips):
        bit = chance.randrange(8 * len(whole))
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        found = read()
        if found is not None and found != right:
            yield bit
    path.write_bytes(whole)

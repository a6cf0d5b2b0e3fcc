"""Single bits flipped in what is stored: each is noticed, by the file's name, or changes nothing that is read."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mclab.config.strict import ConfigError
from mclab.store import Records
from mclab.train.weights import load_model
from tests.attack.bases import HALF, Bases
from tests.attack.mutate import flip
from tests.attack.place import Place
from tests.attack.processes import no_drawing
from tests.commands import fine

#: What a reader of a run folder is told, and what is read there.
Reading = tuple[list[str], Any]


def _record(folder: Path, run: str) -> Reading:
    said: list[str] = []
    return said, Records(folder, say=said.append).lookup(run)


def _curve(folder: Path, run: str) -> Reading:
    said: list[str] = []
    return said, Records(folder, say=said.append).curve(run)


def _weights(folder: Path, run: str) -> Reading:
    try:
        model, config = load_model(folder, run)
    except ConfigError as error:
        return [str(error)], None
    return [], (
        config,
        {name: each.tobytes() for name, each in ((n, p.numpy()) for n, p in model.state_dict().items())},
    )


#: Stored file -> how it is read by its run's id.
READ: dict[str, Callable[[Path, str], Reading]] = {"records": _record, "curves": _curve, "weights": _weights}


@pytest.mark.parametrize("room", READ)
def test_a_flipped_bit_is_named_or_changes_nothing(
    room: str, flips: range, seed: int, bases: Bases, tmp_path: Path
) -> None:
    folder, silent = tmp_path / "it", []
    shutil.copytree(bases.grid, folder)
    whole = {path: path.read_bytes() for path in sorted((folder / room).iterdir())}
    true = {path: READ[room](folder, path.stem) for path in whole}
    assert not any(said for said, _ in true.values())
    for number in flips:
        rng = Random(f"{seed}/{room}/{number}")
        path = rng.choice(sorted(whole))
        path.write_bytes(changed := flip(whole[path], rng))
        said, read = READ[room](folder, path.stem)
        if not any(path.name in line for line in said) and read != true[path][1]:
            where = [place for place, (a, b) in enumerate(zip(changed, whole[path], strict=True)) if a != b]
            silent.append(f"{room} {number} of seed {seed}: byte {where} of {path.name}, {said}")
        path.write_bytes(whole[path])
    assert not silent, "\n".join([f"{len(silent)} of {len(flips)} went unnoticed:", *silent])


def test_a_run_goes_on_from_a_checkpoint_with_a_flipped_bit_as_if_it_had_none(
    flips: range, seed: int, bases: Bases, tmp_path: Path
) -> None:
    wrong, whole = [], _weights_of(bases.whole)
    for number in flips:
        place, rng = Place(tmp_path / "place"), Random(f"{seed}/checkpoints/{number}")
        with place.set_up(bases.half), no_drawing():
            (path,) = (place.run / "checkpoints").iterdir()
            path.write_bytes(flip(path.read_bytes(), rng))
            done = fine(*HALF)
            if _weights_of(place.run) != whole:
                wrong.append(f"checkpoints {number} of seed {seed}: {done.err}")
    assert not wrong, "\n".join([f"{len(wrong)} of {len(flips)} ended otherwise:", *wrong])


def _weights_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in (folder / "weights").iterdir()]

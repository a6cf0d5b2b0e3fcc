"""What a run folder holds, spoilt, and the commands that meet it."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.attack import mutate
from tests.attack.bases import GRID, HALF, SEARCH, Bases
from tests.attack.given import Attack, Spoilt
from tests.attack.mutate import BYTES, LINES, Way, mutated
from tests.attack.place import RUNNING, SEARCHING, Place
from tests.attack.processes import no_drawing
from tests.commands import TINY
from tests.sweep.bench import SPACE, FakeTraining

JSON = (*BYTES, *LINES, *[mutate.json_tree] * 8)
NDJSON = (*BYTES, *LINES, *[mutate.json_line] * 8)


def _reading(rng: Random, ids: Sequence[str], sweep: bool) -> list[object]:
    """A command that reads a run folder."""
    run = rng.choice(ids)
    verbs: list[list[object]] = [["table", "runs/it"], ["table", "runs/it", "--json"], ["list", "runs/it"]]
    verbs += [["list", "runs/it", "--json"], ["show", run, "runs/it"], ["show", run, "runs/it", "--all", "--json"]]
    verbs += [] if sweep else [["compare", "runs/it", "gate=context", "gate=none"], [*GRID, "--dry-run"]]
    return rng.choice(verbs)


def _ids(base: Path) -> list[str]:
    return sorted(path.stem for path in (base / "records").iterdir())


def stored(base: str, name: str, ways: Sequence[Way], drawn: float = 0.0) -> Attack:
    """On a file of a run folder: `name` is a pattern, of whose files one is spoilt. Records that are whole stay so."""

    def attack(place: Place, bases: Bases, rng: Random) -> Spoilt:
        folder = Path(getattr(bases, base))
        file = rng.choice(sorted(folder.glob(name))).relative_to(folder)
        spoilt = mutated((folder / file).read_bytes(), ways, rng)
        (place.run / file).write_bytes(spoilt)
        for _ in range(2):
            place.command(*_reading(rng, _ids(folder), base == "search"))
        if rng.random() < drawn:
            place.command("plot", "runs/it", "--format", "svg", *rng.choice(([], ["--kind", "curves"])))
        return {file.name: spoilt}

    return attack


def _kept(place: Place, before: Path, but: Path | None = None) -> None:
    """Whole records are as they were; a damaged one is there, whatever it is called now."""
    for path in sorted((before / "records").iterdir()):
        now, file = place.run / "records" / path.name, path.relative_to(before)
        if file != but and not (now.exists() and now.read_bytes() == path.read_bytes()):
            place.fault(f"{file} was whole and is {'another' if now.exists() else 'gone'}")


def again(base: str, names: Sequence[str], ways: Sequence[Way]) -> Attack:
    """On a file that the same command meets when it is given again; what is missing is done at once."""
    command, writes = (GRID, RUNNING) if base == "grid" else (SEARCH, SEARCHING)

    def attack(place: Place, bases: Bases, rng: Random) -> Spoilt:
        folder = Path(getattr(bases, base))
        file = Path(rng.choice([str(path.relative_to(folder)) for name in names for path in sorted(folder.glob(name))]))
        spoilt = mutated((folder / file).read_bytes() or b'{"pid": 1}', ways, rng)
        (place.run / file).write_bytes(spoilt)
        Path("grid.yaml").write_text(TINY)
        Path("space.yaml").write_text(SPACE)
        with no_drawing(), patch("mclab.train.train_pack", FakeTraining()):
            place.command(*command, writes=writes)
        _kept(place, folder, file)
        if file.parts[0] == "records" and not any(path.read_bytes() == spoilt for path in place.run.glob(f"{file}*")):
            place.fault(f"the damaged {file} is gone")
        return {file.name: spoilt}

    return attack


def flight(place: Place, bases: Bases, rng: Random) -> Spoilt:
    """The note of what trains, as a killed process leaves it."""
    run = rng.choice(_ids(bases.grid))
    deaths = {run: {"times": 1, "share": 0.5, "checkpoint": 0}}
    note = {"host": "h", "boot": "b", "pid": 1, "now": [run], "share": 0.5, "deaths": deaths}
    spoilt = mutated(json.dumps(note, indent=1).encode(), JSON, rng)
    (place.run / "in_flight.json").write_bytes(spoilt)
    (place.run / "records" / f"{run}.json").unlink()
    Path("grid.yaml").write_text(TINY)
    with no_drawing(), patch("mclab.train.train_pack", FakeTraining()):
        place.command(*GRID, writes=RUNNING)
    return {"in_flight.json": spoilt}


def weights(place: Place, bases: Bases, rng: Random) -> Spoilt:
    file = rng.choice(sorted((place.run / "weights").iterdir()))
    spoilt = mutated(file.read_bytes(), (*BYTES, token_in_head), rng)
    file.write_bytes(spoilt)
    place.command("sample", "--run", file.stem, "--in", "runs/it", writes=())
    return {file.name: spoilt}


def token_in_head(data: bytes, rng: Random) -> bytes:
    """A word of a safetensors file's header replaced; its length is told right, or not."""
    size = int.from_bytes(data[:8], "little")
    head = mutate.token(data[8 : 8 + size], rng)
    return (len(head) if rng.random() < 0.7 else size).to_bytes(8, "little") + head + data[8 + size :]


def checkpoint(place: Place, bases: Bases, rng: Random) -> Spoilt:
    (file,) = (place.run / "checkpoints").iterdir()
    spoilt = mutated(file.read_bytes(), (*BYTES, token_in_head), rng)
    file.write_bytes(spoilt)
    with no_drawing():
        place.command(*HALF, writes=RUNNING)
    return {file.name: spoilt}

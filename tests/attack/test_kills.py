"""Commands killed at random moments: given again they come to what they would have come to, and nothing is left over.

Who else may come into a cluster than those with its key is tested in tests/workers/test_local.py.
"""

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.attack.bases import Bases
from tests.attack.processes import Command, ended
from tests.commands import TINY, records
from tests.sweep.bench import BASE

#: Runs long enough to be killed in, each with checkpoints.
LONG = TINY.replace("steps: 4, batch: 8", "steps: 24, batch: 8, checkpoint_every: 6").replace("every: 2", "every: 8")
GRID = ("ablate", "--grid", "grid.yaml", "--workers", 1, "--save-weights", "--device", "cpu", "--out", "o")
#: Trials as long.
SPACE = f"""{BASE.replace("steps: 4", "steps: 24").replace("every: 2", "every: 8")}
space:
  model.mixer.gate: [context, input, none]
  train.lr: {{low: 1.0e-3, high: 1.0e-1, log: true}}
sampler: random
"""
TRIALS = 6
SEARCH = ("sweep", "--space", "s.yaml", "--workers", 1, "--trials", TRIALS, "--device", "cpu")
#: Figures of a record that tell of the clock and the machine, and what follows from them.
_CLOCKS = ("wall_s", "tokens_per_s", "provenance", "sha256")
#: How long after a sign of progress a kill may come: several times what a run takes on an idle machine.
_MOMENT = 0.15


def seen(*folders: Path) -> int:
    """How far commands are, by the files that tell of it; those of one that is being written count."""
    return sum(1 for folder in folders for path in folder.rglob("*") if path.suffix != ".yaml")


def kill_at_random(command: Command, rng: Random, *folders: Path) -> bool:
    """Kill it after the next few files that it writes, and a moment more. Whether it was still there."""
    until = seen(*folders) + rng.randrange(12)
    command.wait_until(lambda: seen(*folders) >= until, rng.uniform(0, _MOMENT) if rng.random() < 0.7 else 0)
    return command.kill()


def science(out: Path) -> dict[str, Any]:
    """What a run folder holds, run by run, without clocks: records, and the bytes of curves and weights."""
    found: dict[str, Any] = {}
    for name, record in records(out).items():
        found[name] = [{key: value for key, value in record.items() if key not in _CLOCKS}]
        found[name] += [path.read_bytes() for room in ("curves", "weights") for path in (out / room).glob(f"{name}.*")]
    return found


def leftovers(out: Path) -> list[str]:
    """What a command that has come to its end leaves to nobody."""
    found = [str(path) for path in out.rglob("*") if path.name.startswith(".") or ".damaged" in path.name]
    found += [name for name in ("checkpoints", "in_flight.json") if (out / name).exists()]
    return [*found, *(["lock"] if (out / "lock").read_text() else [])]


def finished(words: tuple[object, ...], folder: Path, stores: str = "o") -> str:
    """Give the command again; where kills from outside have made it or one before give up runs, as their records then
    say, a last time. Its words."""
    code, err = ended(words, folder)
    if code == 3:
        records = folder.glob(f"{stores}/records/*.json")
        assert any("the process died 2 times in a row" in path.read_text() for path in records), err
        code, err = ended((*words, "--retry-failed"), folder)
    assert code == 0, err
    assert not any(word in err for word in ("damaged", "Traceback", "torn or no")), err
    return err


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory, bases: Bases) -> dict[str, Any]:
    """What the grid comes to when nobody kills it."""
    folder = tmp_path_factory.mktemp("unharmed")
    (folder / "grid.yaml").write_text(LONG)
    finished(GRID, folder)
    return science(folder / "o")


def test_a_grid_killed_anywhere_comes_to_what_it_would_have(
    grid_kills: range, seed: int, unharmed: dict[str, Any], tmp_path: Path
) -> None:
    rng, out, kills = Random(f"{seed}/grid kills/{grid_kills.start}"), tmp_path / "o", 0
    (tmp_path / "grid.yaml").write_text(LONG)
    while kills < len(grid_kills):
        for _ in range(rng.randrange(1, 4)):
            before = science(out)
            kills += kill_at_random(Command(GRID, tmp_path), rng, out)
            assert science(out).items() >= before.items(), f"{kills} kills, seed {seed}: a stored run was lost"
        finished(GRID, tmp_path)
        assert science(out) == unharmed, f"{kills} kills, seed {seed}"
        assert not leftovers(out), f"{kills} kills, seed {seed}"
        rows = (out / "tables/runs.csv").read_text().splitlines()[1:]
        assert len(rows) == len({row.partition(",")[0] for row in rows}) == len(unharmed)
        shutil.rmtree(out)


def _trials(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "trials.json").read_text())["trials"]
    return found


@pytest.mark.usefixtures("bases")
def test_a_search_of_two_processes_killed_anywhere_finishes_as_many_trials_as_asked(
    search_kills: range, seed: int, tmp_path: Path
) -> None:
    rng, kills, round_ = Random(f"{seed}/search kills/{search_kills.start}"), 0, 0
    while kills < len(search_kills):
        (here := tmp_path / str(round_ := round_ + 1)).mkdir()
        folders = [here / "one", here / "two"]
        for folder in folders:
            folder.mkdir()
            (folder / "s.yaml").write_text(SPACE)
        commands = [(*SEARCH, "--storage", here / "j.log", "--out", folder / "o") for folder in folders]
        running = [Command(command, folder) for command, folder in zip(commands, folders, strict=True)]
        for _ in range(rng.randrange(1, 4)):
            victim = rng.randrange(2)
            kills += kill_at_random(running[victim], rng, here)
            running[victim] = Command(commands[victim], folders[victim])
        assert {command.wait() for command in running} <= {0, 3}
        for command, folder in zip(commands, folders, strict=True):
            finished(command, folder, "../*/o")
        _check(here, folders, f"{kills} kills, seed {seed}")


def _check(here: Path, folders: list[Path], where: str) -> None:
    """Exactly the trials that were asked for, each run stored and none beside, no trial without an end."""
    found = _trials(folders[1] / "o")
    taken = {trial["retry_of"] for trial in found}
    counted = [t for t in found if t["status"] not in ("lost", "refused") and t["number"] not in taken]
    assert [trial["status"] for trial in counted] == ["done"] * TRIALS, where
    assert {trial["status"] for trial in found} <= {"done", "lost", "failed"}, where
    assert {trial["number"] for trial in found if trial["status"] == "lost"} <= taken, where
    stored = [set(records(folder / "o")) for folder in folders]
    assert stored[0] | stored[1] == {run for trial in counted for run in trial["run_ids"]}, where
    assert not [path for path in here.rglob(".*") if path.is_file()], where

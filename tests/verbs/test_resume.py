"""The command that goes on with a folder."""

import json
import shlex
from pathlib import Path

import pytest

from mclab.plan.grid import load_plan
from mclab.plan.plan import Plan
from mclab.store import Records, Store
from mclab.verbs.resume import command

GRID = """
question: Does it matter?
base: {train: {steps: 9, lr: 1e-2}}
grid: {model.mixer.gate: [context, none]}
seeds: 0..2
quick: {base: {train.steps: 3}, seeds: [0, 1]}
"""


def adopted(out: Path, *overrides: str, seeds: str | None = None, text: str = GRID, **how: bool) -> str | None:
    """What to give to go on after `mclab ablate --grid ablations/g.yaml` with these overrides, into `out`."""
    grid = Path("ablations/g.yaml")
    grid.parent.mkdir(exist_ok=True)
    grid.write_text(text)
    return stored(out, load_plan(grid, overrides, seeds, **how), grid)


def stored(out: Path, plan: Plan, grid: Path) -> str | None:
    """What to give to go on with a folder that holds the plan, by what the folder alone says."""
    with Store(out) as store:
        store.adopt(plan, grid.read_bytes())
    return again(out)


def again(out: Path) -> str | None:
    plan = Records(out).plan()
    assert plan is not None
    return command(out, plan)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_grids_own_file_in_the_usual_folder() -> None:
    assert adopted(Path("runs/g")) == "mclab ablate --grid ablations/g.yaml"
    assert adopted(Path("other")) == "mclab ablate --grid ablations/g.yaml --out other"


def test_overrides_come_back_as_they_can_be_given() -> None:
    found = adopted(Path("runs/g"), "train.steps=5", "task.pairs=[2, 4]", "train.stop_at=0.9", seeds="[0]")
    assert found is not None
    words = shlex.split(found)[4:]
    assert words == ["train.steps=5", "task.pairs=[2, 4]", "train.stop_at=0.9"]
    again = load_plan("ablations/g.yaml", words, "[0]")
    assert again.cells[0].candidates[0].runs[0].train.stop_at == 0.9


def test_words_that_stand_for_several_keys_come_back_as_words() -> None:
    words = ("model.mixer=transformer++", "model.heads=2")
    text = GRID.replace("model.mixer.gate: [context, none]", "model.layers: [1, 2]")
    found = adopted(Path("runs/g"), *words, text=text)
    assert found == "mclab ablate --grid ablations/g.yaml model.mixer=transformer++ model.heads=2"


def test_a_seed_gives_way_to_the_seeds_that_are_added() -> None:
    text = GRID.replace("seeds: 0..2", "")
    assert adopted(Path("runs/g"), "seed=7", "train.steps=5", text=text) == (
        "mclab ablate --grid ablations/g.yaml train.steps=5"
    )


def test_the_grid_is_found_where_it_was() -> None:
    grid = Path("deep/down/mine.yaml")
    grid.parent.mkdir(parents=True)
    grid.write_text(GRID)
    assert stored(Path("runs/mine"), load_plan(grid), grid) == "mclab ablate --grid deep/down/mine.yaml"
    grid.unlink()
    assert again(Path("runs/mine")) == "mclab ablate --grid runs/mine/grid.yaml --out runs/mine"


@pytest.mark.parametrize(
    ("overrides", "how", "words"),
    [
        ([], {}, ""),
        (["train.steps=5", "task.pairs=[2, 4]"], {}, " 'task.pairs=[2, 4]' train.steps=5"),
        ([], {"quick": True}, " --quick --out runs/g"),
        (["train.steps=5"], {"smoke": True}, None),
    ],
)
def test_a_folder_of_before_has_its_words_found_by_its_cells(
    overrides: list[str], how: dict[str, bool], words: str | None
) -> None:
    """Its plan.json has neither `given` nor `written`."""
    adopted(Path("runs/g"), *overrides, **how)
    path = Path("runs/g/plan.json")
    data = json.loads(path.read_text())
    del data["given"], data["written"]
    path.write_text(json.dumps(data))
    assert again(Path("runs/g")) == (None if words is None else f"mclab ablate --grid ablations/g.yaml{words}")


def test_a_grid_that_has_changed_since_gives_way_to_the_folders_copy() -> None:
    adopted(Path("runs/g"))
    plan = load_plan("ablations/g.yaml")
    Path("ablations/g.yaml").write_text(GRID.replace("steps: 9", "steps: 8"))
    assert command(Path("runs/g"), plan) == "mclab ablate --grid runs/g/grid.yaml --out runs/g"


def test_the_reduced_form_stays_reduced() -> None:
    assert adopted(Path("runs/g-quick"), quick=True) == "mclab ablate --grid ablations/g.yaml --quick"


def test_a_folder_that_keeps_weights_goes_on_to_keep_them() -> None:
    Path("runs/g/weights").mkdir(parents=True)
    assert adopted(Path("runs/g")) == "mclab ablate --grid ablations/g.yaml --save-weights"


def test_where_no_command_would_do_there_is_none() -> None:
    assert adopted(Path("runs/g-smoke"), smoke=True) is None
    assert adopted(Path("runs/g")) is not None
    changed = load_plan("ablations/g.yaml", ["model.mixer.segment=4", "model.dim=8"])
    for folder in ("runs/g", "nowhere"):
        Path(folder, "grid.yaml").unlink(missing_ok=True)
        assert command(Path(folder), changed) is None

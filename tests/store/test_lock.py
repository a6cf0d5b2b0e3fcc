"""Files that mclab did not write: they stay where they are and what they are."""

import os
from pathlib import Path

import pytest

from mclab.plan.grid import load_plan
from mclab.plan.plan import Plan
from mclab.store import Store, StoreError
from tests.commands import TINY, fine, grid_file, mclab, no_plots, snapshot
from tests.store.test_folder import DONE, checkpointed, run_of

OURS = f".plan.json.{'0f' * 8}.tmp"
THEIRS = (".notes.tmp", ".notes.0f0f.tmp", f".x.{'0F' * 8}.tmp", f"x.{'0f' * 8}.tmp", f"..{'0f' * 8}.tmp")
FOLDERS = ("", "records", "curves", "weights", "checkpoints", "tables", "plots")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return load_plan(grid_file(tmp_path))


def test_leftovers_go_by_their_whole_name_and_nothing_else_does(tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in (OURS, *THEIRS):
            (tmp_path / folder / name).write_text("x")
        (tmp_path / folder / f".folder.{'0f' * 8}.tmp").mkdir()
    Store(tmp_path).close()
    for folder in FOLDERS:
        assert not (tmp_path / folder / OURS).exists(), folder
        assert all((tmp_path / folder / name).exists() for name in THEIRS), folder
        assert (tmp_path / folder / f".folder.{'0f' * 8}.tmp").is_dir()


@pytest.mark.parametrize("name", FOLDERS[1:])
def test_nothing_is_deleted_behind_a_link(tmp_path: Path, name: str) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    other.mkdir()
    with Store(out) as store:
        store.put(run_of(0), DONE)
    if (out / name).is_dir():
        (out / name).rename(tmp_path / "aside")
    checkpoint = checkpointed(tmp_path, 0)  # of a run that is stored
    checkpoint.rename(other / checkpoint.name)
    (other / OURS).write_text("x")
    (out / name).symlink_to(other)
    before = snapshot(other)
    Store(out).close()
    assert snapshot(other) == before


def test_a_link_among_the_leftovers_is_no_leftover(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    (tmp_path / OURS).symlink_to(tmp_path / "mine")
    Store(tmp_path).close()
    assert (tmp_path / OURS).is_symlink()


def test_the_folder_one_stands_in_keeps_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)
    monkeypatch.chdir(tmp_path)
    mine = {grid_file(tmp_path), *(tmp_path / name for name in THEIRS)}
    for path in mine:
        path.write_text(TINY)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / f"{'0f' * 8}.safetensors").write_text("mine")
    before = snapshot(tmp_path)
    fine("ablate", "--grid", "tiny.yaml", "--out", ".", "--seeds", "0", "--workers", 1)
    fine("ablate", "--grid", "tiny.yaml", "--out", ".", "--seeds", "0", "--workers", 1)
    after = snapshot(tmp_path)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("name", ["grid.yaml", "tables/mine.csv", "plots/mine.png", "lock"])
def test_what_would_be_written_over_is_refused_before_anything_runs(tmp_path: Path, plan: Plan, name: str) -> None:
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    for _ in range(2):
        with (
            pytest.raises(
                StoreError, match=r"^\S+/(grid.yaml|tables|plots|lock): .*; give another (run )?folder with --out$"
            ),
            Store(tmp_path / "out") as store,
        ):
            store.adopt(plan, TINY.encode())
        assert path.read_text() == "mine"


def test_a_lock_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    (tmp_path / "lock").symlink_to(tmp_path / "mine")
    with pytest.raises(StoreError, match="is no regular file, so it cannot be a lock; give another folder with --out"):
        Store(tmp_path)
    os.remove(tmp_path / "lock")
    Store(tmp_path).close()


def test_the_same_grid_there_already_and_a_folder_of_ours_go_on(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "grid.yaml").write_text(TINY)
    with Store(tmp_path) as store:
        store.adopt(plan, TINY.encode())
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "table.csv").write_text("ours")
    with Store(tmp_path) as store:
        store.adopt(plan, f"{TINY}\n".encode())
        (tmp_path / "plan.json").write_text("torn")
        (tmp_path / "plan.json.damaged").symlink_to(tmp_path / "nowhere")
        store.adopt(plan, TINY.encode())
    assert (tmp_path / "plan.json.damaged").is_symlink()
    assert (tmp_path / "plan.json.damaged2").read_text() == "torn"


@pytest.mark.parametrize("name", ["space.yaml", "trials.json"])
def test_a_search_writes_over_nothing_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lr.yaml").write_text("space: {train.lr: [0.1, 0.2]}")
    Path(name).write_text("mine")
    done = mclab("sweep", "--space", "lr.yaml", "--trials", 1, "--out", ".", "--workers", 1)
    last = done.err.splitlines()[-1]
    assert (done.code, last) == (
        2,
        f"./{name}: this file exists and was not written by mclab; give another folder with --out",
    )
    assert Path(name).read_text() == "mine"


def test_a_folder_with_records_is_ours_though_its_plan_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)
    monkeypatch.chdir(tmp_path)
    grid_file(tmp_path)
    fine("ablate", "--grid", "tiny.yaml", "--workers", "1")
    (tmp_path / "runs" / "tiny" / "plan.json").unlink()
    done = fine("ablate", "--grid", "tiny.yaml", "--workers", "1")
    assert "4 stored before" in done.out + done.err

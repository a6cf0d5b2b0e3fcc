"""Runs that fail, are killed, run again or pile up, from the command line to the records."""

import gc
import re
import signal
import time
import tomllib
from pathlib import Path

import polars as pl
import pytest

from mclab.config.ids import run_id
from tests.commands import ROOT, fine, grid_file, mclab, records, started, with_grid
from tests.stored import done


def spy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the runs that are trained from now on, in this process."""
    from mclab.train import train_pack

    trained: list[str] = []

    def spied(runs, *, device, progress=None, keep=None):
        trained.extend(map(run_id, runs))
        return train_pack(runs, device=device, progress=progress, keep=keep)

    monkeypatch.setattr("mclab.train.train_pack", spied)
    return trained


@pytest.mark.usefixtures("quick")
def test_killed_in_the_sixth_of_ten_runs_the_same_command_trains_the_rest(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hydra#1407."""
    out = here / "runs/tiny"
    words = ["ablate", "--grid", "tiny.yaml", "--workers", 1, "--seeds", "0..4", "train.steps=60", "eval.every=60"]
    with started(*words, folder=here) as process:
        while len(records(out)) < 5 and process.poll() is None:
            time.sleep(0.001)
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    stored = {name: (out / f"records/{name}.json").stat().st_mtime_ns for name in records(out)}
    assert 5 <= len(stored) < 10
    trained = spy(monkeypatch)
    assert f"{10 - len(stored)} done; {len(stored)} stored before" in fine(*words).err
    assert len(records(out)) == 10
    assert sorted(trained) == sorted(set(records(out)) - set(stored))
    assert {name: (out / f"records/{name}.json").stat().st_mtime_ns for name in stored} == stored
    assert not list(out.rglob(".*"))


@pytest.mark.usefixtures("quick")
def test_after_any_number_of_resumes_there_is_one_row_a_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """wandb#4283."""
    words = ["ablate", "--grid", "tiny.yaml", "--workers", 1]
    with monkeypatch.context() as patched:
        fail_once(patched, {(1, "context")})
        assert mclab(*words).code == 3
    for more in ([], ["--retry-failed"], ["--seeds", "0..2"], ["--seeds", "0..2"]):
        mclab(*words, *more)
        for file in ("runs.csv", "runs.parquet"):
            path = here / "runs/tiny/tables" / file
            runs = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
            assert runs["run_id"].n_unique() == len(runs) == len(records(here / "runs/tiny"))
    assert runs["status"].to_list() == ["done"] * 6


def fail_once(monkeypatch: pytest.MonkeyPatch, fated: set[tuple[int, str]] | None) -> None:
    """Runs with such a seed and gate fail (`None`: all), the others learn nothing."""

    def train_pack(runs, *, device, progress=None, keep=None):
        if fated is None or any((run.seed, run.model.mixer.gate) in fated for run in runs):
            raise RuntimeError("the card fell off the bus")
        return [done(run) for run in runs]

    monkeypatch.setattr("mclab.train.train_pack", train_pack)


@pytest.mark.usefixtures("quick")
def test_where_all_failed_all_run_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ray#16891."""
    words = ["ablate", "--grid", "tiny.yaml", "--workers", 1]
    with monkeypatch.context() as patched:
        fail_once(patched, None)
        failed = mclab(*words)
    assert failed.code == 3
    assert failed.err.count("failed: RuntimeError: the card fell off the bus") == 4
    assert "2 failed" in failed.out
    assert "this command: 4 done; 0 stored before" in fine(*words, "--retry-failed").err
    assert {record["status"] for record in records(here / "runs/tiny").values()} == {"done"}


@pytest.mark.usefixtures("quick")
def test_a_learning_rate_that_explodes_is_a_row_and_not_the_end(here: Path) -> None:
    """titans-pytorch#53, optuna#2727: exit code 3, the step in words, accuracy 0 in the mean, the others done."""
    grid = "changes: {sane: {}, wild: {train.lr: 1.0e+30}}"
    grid_file(here, with_grid(grid), "wild.yaml")
    done = mclab("ablate", "--grid", "wild.yaml", "--workers", 1, "--seeds", "0..2")
    assert done.code == 3
    assert "this command: 3 diverged, 3 done; 0 stored before" in done.err
    assert re.search(r"wild, seed 0 \(run [0-9a-f]{16}\): diverged at step \d\n", done.err)
    assert re.search(r'! "wild", seed 2: diverged at step \d', done.out)
    table = pl.read_csv(here / "runs/wild/tables/table.csv")
    assert table["status"].to_list() == ["3 done", "3 diverged"]
    assert table["n"].to_list() == [3, 3]
    assert table["test_accuracy_mean"][1] == 0
    assert table["diff_mean"][1] == pytest.approx(-table["test_accuracy_mean"][0])


@pytest.mark.usefixtures("quick")
def test_one_diverged_seed_counts_as_zero_in_the_mean(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mclab.train import train_pack

    def unlucky(runs, *, device, progress=None, keep=None):
        wild = [run.model_copy(update={"train": run.train.model_copy(update={"lr": 1e30})}) for run in runs]
        return train_pack(wild if runs[0].seed == 1 else runs, device=device, progress=progress, keep=keep)

    monkeypatch.setattr("mclab.train.train_pack", unlucky)
    assert mclab("ablate", "--grid", "tiny.yaml", "--workers", 1, "--seeds", "0..2").code == 3
    runs = pl.read_csv(here / "runs/tiny/tables/runs.csv").filter(gate="context")
    row = pl.read_csv(here / "runs/tiny/tables/table.csv").row(0, named=True)
    assert row["status"] == "2 done, 1 diverged"
    assert runs["test_accuracy"][1] == 0
    assert row["test_accuracy_mean"] == pytest.approx(runs["test_accuracy"].sum() / 3)


@pytest.mark.usefixtures("quick")
def test_thirty_runs_in_one_process_leave_nothing_behind(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """optuna#1224, #5931: how many tensors live after each run, and how large they are; a failure in run 3 included."""
    import torch
    from torch._subclasses import FakeTensor

    from mclab.constants import holdings
    from mclab.train import train_pack

    alive: list[tuple[int, int]] = []

    def counted(runs, *, device, progress=None, keep=None):
        trained.append(runs[0].seed)
        if len(trained) == 3:
            held = torch.zeros(1000, requires_grad=True)
            raise RuntimeError(f"a traceback that holds {held.sum()}")
        if len(trained) in (5, 14, 29):
            while gc.collect():  # what torch.compile leaves of an earlier test is freed over several passes
                pass
            tables = {id(each) for each in holdings()}  # made once a shape, and the second cell has its own
            tensors = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]
            # What torch.export leaves of an earlier test has shapes of symbols and holds no numbers.
            tensors = [each for each in tensors if id(each) not in tables and not issubclass(type(each), FakeTensor)]
            alive.append((len(tensors), sum(each.numel() for each in tensors)))
        return train_pack(runs, device=device, progress=progress, keep=keep)

    trained: list[int] = []
    monkeypatch.setattr("mclab.train.train_pack", counted)
    assert mclab("ablate", "--grid", "tiny.yaml", "--workers", 1, "--seeds", "0..14", "train.steps=2").code == 3
    assert (len(trained), len(alive)) == (30, 3)
    assert len(set(alive)) == 1


@pytest.mark.gpu
def test_thirty_runs_in_one_process_keep_no_gpu_memory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    from mclab.train import train_pack

    held: list[int] = []

    def measured(runs, *, device, progress=None, keep=None):
        gc.collect()
        held.append(torch.cuda.memory_allocated())
        if len(held) == 3:
            torch.empty(1 << 45, device=device)
        return train_pack(runs, device=device, progress=progress, keep=keep)

    monkeypatch.setattr("mclab.train.train_pack", measured)
    words = ["--device", "cuda", "--pack", "1", "--workers", "1", "--seeds", "0..14"]
    assert mclab("ablate", "--grid", "tiny.yaml", *words).code == 3
    assert max(held[4:]) - min(held[4:]) < 1 << 20
    assert [record["status"] for record in records(here / "runs/tiny").values()].count("oom") == 1


def test_dependencies_are_few_and_bounded() -> None:
    """pytorch-lightning#21691: a release that was malware."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(project["dependencies"]) < 20
    bounded = r"[a-z][a-z0-9]*>=[\d.]+(,<[\d.]+)?(; platform_.*)?"
    assert all(re.fullmatch(bounded, each) for each in project["dependencies"])
    assert not [each for each in project["dependencies"] if "lightning" in each]

"""mclab ablate: what is stored, what is said, the exit code."""

from pathlib import Path

import pytest

from mclab.config.outcome import Outcome
from tests.commands import SMALL, TINY, fine, grid_file, mclab, no_plots, one_line, records, snapshot, with_grid
from tests.stored import done as done_run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)


def test_a_grid_runs_and_the_same_command_finds_nothing_to_do(here: Path) -> None:
    words = ("ablate", "--grid", "tiny.yaml", "--workers", 1)
    first = fine(*words)
    assert first.out.split()[:7] == ["Does", "the", "gate", "matter?", "gate", "test", "accuracy"]
    assert "this command: 4 done; 0 stored before; " in first.err
    assert "wrote into runs/tiny/tables: table.csv, table.parquet, table.md" in first.err
    assert (here / "runs/tiny/grid.yaml").read_text() == TINY
    assert max(map(len, first.out.splitlines())) <= 120
    again = fine(*words)
    assert "this command: nothing run; 4 stored before" in again.err
    assert again.out == first.out
    more = fine(*words, "--seeds", "0..2")
    assert "this command: 2 done; 4 stored before" in more.err


def test_another_grid_needs_leave_and_so_do_other_seeds(here: Path) -> None:
    words = ("ablate", "--grid", "tiny.yaml", "--workers", 1, "--smoke", "--out", "out")
    fine(*words)
    before = snapshot(here)
    for other in ("model.dim=16", "--seeds=0,3"):
        one_line(mclab(*words, other), "out holds another grid, compared with which this one is ", "give --extend")
    assert snapshot(here) == before
    assert "2 cells" in mclab(*words, "model.dim=16").err
    fine(*words, "model.dim=16", "--extend")
    assert len(records(here / "out")) == 8


def test_overrides_as_arguments_and_as_options_are_the_same() -> None:
    plans = [
        fine("ablate", "--grid", "tiny.yaml", "--dry-run", "--json", *given).json
        for given in (["train.lr=1e-3"], ["--set", "train.lr=1e-3"], ["--set=train.lr=0.001"])
    ]
    assert plans[0] == plans[1] == plans[2]
    assert plans[0]["cells"][0]["candidates"][0]["config"]["train.lr"] == 0.001


def fate(monkeypatch: pytest.MonkeyPatch, outcome: Outcome | Exception | None) -> None:
    """Every run with seed 1 comes to this, the others (and with `None` all) are done."""

    def train_pack(runs, *, device, progress=None, keep=None):
        if isinstance(outcome, Exception) and any(run.seed == 1 for run in runs):
            raise outcome
        return [outcome if outcome and run.seed == 1 else done_run(run, steps=run.train.steps) for run in runs]

    monkeypatch.setattr("mclab.train.train_pack", train_pack)


def test_what_fails_is_told_and_runs_again_when_asked(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("ablate", "--grid", "tiny.yaml", "--workers", 1)
    fate(monkeypatch, MemoryError("8 GiB"))
    failed = mclab(*words)
    assert failed.code == 3
    assert "gate=context, seed 1 (run " in failed.err
    assert "this command: 2 done, 2 oom; 0 stored before" in failed.err
    assert "--retry-failed tries the failed runs again" in failed.err
    assert "1 done, 1 oom" in failed.out
    assert (mclab(*words).code, len(records(here / "runs/tiny"))) == (3, 4)
    fate(monkeypatch, None)
    assert "this command: nothing run; 4 stored before" in mclab(*words).err
    assert "this command: 2 done; 2 stored before" in fine(*words, "--retry-failed").err


@pytest.mark.parametrize(("option", "ran"), [(["--fail-fast"], 2), (["--max-failures", "2"], 4), ([], 4)])
def test_where_failures_stop_it(option: list[str], ran: int, monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    fate(monkeypatch, Outcome("diverged", steps=3, diverged_step=3))
    done = mclab("ablate", "--grid", "tiny.yaml", "--workers", 1, *option)
    assert done.code == 3
    assert len(records(here / "runs/tiny")) == ran
    assert (
        "; stopped after 1 failed run (--fail-fast); 2 runs still missing; the same command continues" in done.err
    ) == (ran == 2)


def results(out: Path) -> dict[str, object]:
    """What the runs learnt, by id."""
    return {name: (record["status"], record["valid"], record["test"]) for name, record in records(out).items()}


def test_processes_packs_and_a_cluster_give_what_one_process_gives(here: Path) -> None:
    """Packs to rounding: they train as one model."""
    from distributed import LocalCluster

    words = ("ablate", "--grid", "tiny.yaml", "--device", "cpu", "--out")
    fine(*words, "one", "--workers", 1)
    fine(*words, "two", "--workers", 2)
    fine(*words, "packs", "--workers", 1, "--pack", 4)
    threads = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp"}
    # None turns the dashboard off, and its server still takes port 8787, with a warning where another has it.
    with LocalCluster(**threads, dashboard_address="127.0.0.1:0") as cluster:
        fine(*words, "cluster", "--scheduler", cluster.scheduler_address)
    assert results(here / "one") == results(here / "two") == results(here / "cluster")
    assert results(here / "one").keys() == results(here / "packs").keys()
    assert {record["provenance"]["pack"] for record in records(here / "packs").values()} == {2}
    losses = [
        [record["test"]["all"]["loss"] for _, record in sorted(records(here / out).items())] for out in ("one", "packs")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_threads_are_the_users_and_recorded(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads(out: str, *options: object) -> set[int]:
        fine("train", *SMALL, "--device", "cpu", "--out", out, *options)
        return {record["provenance"]["threads"] for record in records(here / out).values()}

    monkeypatch.delenv("OMP_NUM_THREADS")
    assert threads("one") == {1}
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert threads("two") == {2}
    assert threads("three", "--threads", 3) == {3}
    assert threads("workers", "--seeds", "0..1", "--workers", 2) == {2}


def test_threads_that_are_no_number_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("0", "many", "-1", "10000"):
        one_line(mclab("train", "--threads", wrong), "--threads", f"must be a number from 1 to 9999, got '{wrong}'")
        monkeypatch.setenv("OMP_NUM_THREADS", wrong)
        one_line(mclab("train", "--dry-run"), "OMP_NUM_THREADS", f"must be a number from 1 to 9999, got '{wrong}'")
        assert "1 run; seed 0" in fine("train", "--dry-run", "--threads", 2).out


def test_weights_of_a_grid_are_kept_when_asked(here: Path) -> None:
    words = ("ablate", "--grid", "tiny.yaml", "--workers", 1)
    fine(*words, "--seeds", "[0]")
    assert not (here / "runs/tiny/weights").exists()
    told = fine(*words, "--save-weights").err
    assert "2 runs of this plan are stored without weights and not trained again; with another --out" in told
    assert len(list((here / "runs/tiny/weights").iterdir())) == 2
    assert sorted(path.stem for path in (here / "runs/tiny/weights").iterdir()) == sorted(
        name for name, record in records(here / "runs/tiny").items() if record["seed"] == 1
    )


def test_a_dry_run_says_how_many_cells_were_excluded(here: Path) -> None:
    rows = "grid: {model.mixer.gate: [context, input, none], model.dim: [8, 16]}\nexclude: [{model.dim: 16}]"
    grid_file(here, with_grid(rows))
    lines = fine("ablate", "--grid", "tiny.yaml", "--dry-run").out.splitlines()
    assert lines[-3] == "6 cells, 3 excluded, 3 distinct; 6 runs; seeds 0, 1"

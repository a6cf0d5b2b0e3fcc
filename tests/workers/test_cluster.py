"""A cluster that the user runs: workers die, hang and come back late, and every run is stored once, with equal bits."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mclab.config.options import Keep, RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.runner.devices import resolved
from mclab.workers import Failure, Pack, Pool, open_pool, worker_count
from tests.clusters import Cluster, wait_until
from tests.commands import TINY, fine, grid_file, records, started

#: What mclab asks of a scheduler.
ASKED = {"WORKER_TTL": "30s", "ALLOWED_FAILURES": 2, "WORKER_SATURATION": 1.0}
#: Dask asks every worker-ttl who has been silent for longer, so 30 s take up to a minute; less than 5 s it does not do.
SETTINGS = {**ASKED, "WORKER_TTL": "5s"}
#: Seconds after which the one test with `ASKED` is given up.
PATIENCE = 300.0
#: Seeds with a fate in `train`.
DIES, EATS, HANGS = 90, 91, 92


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    made = Cluster(folder, SETTINGS, PYTHONPATH=without_mclab(folder))  # it can do without
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A scheduler with the settings that mclab asks for, and time for it."""
    monkeypatch.setattr("tests.clusters.DEADLINE", PATIENCE)
    made = Cluster(tmp_path, ASKED, PYTHONPATH=without_mclab(tmp_path))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def cluster(scheduler: Cluster) -> Iterator[Cluster]:
    """A scheduler that has no workers yet; what the test starts is ended after it."""
    yield scheduler
    scheduler.end_workers()


def without_mclab(folder: Path) -> str:
    """A path that hides mclab from a process."""
    (folder / "mclab.py").write_text("raise ModuleNotFoundError('No module named mclab')")
    return str(folder)


def train(
    runs: Sequence[RunConfig],
    *,
    device: str,
    progress: Callable[[int, int], None] | None = None,
    keep: Keep | None = None,
    notes: Path,
) -> list[Outcome]:
    """Notes its seed and its process, then meets its fate: at every try, the first time, or when it is told."""
    seed = runs[0].seed
    with open(notes, "a") as file:
        file.write(f"{seed} {os.getpid()}\n")
    if seed == DIES:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == EATS and len(tries(notes, EATS)) == 1:
        eaten = [bytearray(os.urandom(2**20)) * 100 for _ in range(8)]
        signal.pause()
        del eaten
    while seed == HANGS and not notes.with_name("go").exists():
        time.sleep(0.05)
        if progress:
            progress(1, 2)
    return [Outcome("done", steps=run.seed) for run in runs]


def tries(notes: Path, seed: int) -> list[int]:
    """The processes that have taken a pack up, one each time."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [int(line.split()[1]) for line in lines if line.split()[0] == str(seed)]


def hand_in(pool: Pool, *seeds: int) -> None:
    for seed in seeds:
        pool.submit((RunConfig(seed=seed),), priority=-seed)


def results(pool: Pool) -> list[tuple[int, Any]]:
    return sorted(((pack[0].seed, result) for pack, result in pool.finished()), key=lambda pair: pair[0])


# ---- the whole command ----


@pytest.mark.product
def test_a_worker_killed_and_one_stopped_and_every_run_is_stored_once_with_the_same_bits(
    as_asked: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest test of all: the scheduler gives the stopped worker up after 30 to 60 s."""
    cluster = as_asked
    grid_file(tmp_path, TINY.replace("steps: 4", "steps: 150").replace("every: 2", "every: 50"))
    (killed, first), (stopped, second) = cluster.worker(), cluster.worker()
    words = ["ablate", "--grid", "tiny.yaml", "--device", "cpu"]
    with started(*words, "--scheduler", cluster.address, "--out", "there", folder=tmp_path) as process:
        wait_until(lambda: records(tmp_path / "there"), "a record")
        wait_until(lambda: cluster.busy(first) and cluster.busy(second), "two packs at work")
        killed.kill()
        stopped.send_signal(signal.SIGSTOP)
        cluster.worker()
        wait_until(lambda: second not in cluster.workers, "the scheduler to give up the stopped one")
        stopped.send_signal(signal.SIGCONT)  # it goes on with a pack that the third has by now
        err = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, err
    assert "worker-ttl" not in err  # nothing of the settings is worth a warning
    assert "this command: 4 done; 0 stored before" in err
    assert "/4 runs done" in err  # progress comes through
    stopped.wait(timeout=60)  # it found out by itself that nobody waits
    monkeypatch.chdir(tmp_path)
    fine(*words, "--workers", 1, "--out", "here")
    assert kept(tmp_path / "there") == kept(tmp_path / "here")
    assert len(kept(tmp_path / "here")) == 4


def kept(out: Path) -> dict[str, Any]:
    """All that is stored of each run but when and where it was trained."""
    aside = ("provenance", "wall_s", "tokens_per_s", "sha256")
    curves = {path.stem: path.read_text() for path in (out / "curves").glob("*.ndjson")}
    return {
        name: ({key: value for key, value in record.items() if key not in aside}, curves[name])
        for name, record in records(out).items()
    }


def test_ctrl_c_frees_the_cluster_and_names_the_command_that_goes_on(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = TINY.replace("steps: 4", "steps: 1000000").replace("every: 2", "every: 1000000")
    grid_file(tmp_path, endless.replace("grid:", "changes: {short: {train.steps: 4}, long: {}}\n#"))
    worker, address = cluster.worker()
    words = ["ablate", "--grid", "tiny.yaml", "--scheduler", cluster.address, "--out", "out", "--seeds", "0..1"]
    with started(*words, folder=tmp_path) as process:
        wait_until(lambda: cluster.busy(address), "a pack at work")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert time.monotonic() - began < 5
    assert (process.returncode, out) == (130, "")
    assert err.endswith(f"interrupted; to continue: mclab {' '.join(words)}\n")
    assert "Traceback" not in err
    # The one thread of the one worker is free again: the training has ended long before its last step.
    assert cluster.client.submit(os.getpid, pure=False).result(timeout=60) == worker.pid


def test_a_scheduler_that_hangs_does_not_hold_up_the_end(cluster: Cluster) -> None:
    with open_pool(RunOptions("cpu", scheduler=cluster.address)) as pool:
        hand_in(pool, 1)
        cluster.scheduler.send_signal(signal.SIGSTOP)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    cluster.scheduler.send_signal(signal.SIGCONT)


def test_a_scheduler_that_dies_ends_it_with_a_line(tmp_path: Path) -> None:
    lone = Cluster(tmp_path, SETTINGS)
    try:
        with open_pool(RunOptions("cpu", scheduler=lone.address)) as pool:
            hand_in(pool, 1)
            lone.scheduler.kill()
            with pytest.raises(
                ConfigError,
                match=r"the Dask scheduler has stopped or is unreachable; .* the same command runs",
            ):
                results(pool)
    finally:
        lone.close()


# ---- packs and their fates ----


def test_a_pack_that_kills_its_worker_costs_itself_alone(cluster: Cluster, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    cluster.worker("--memory-limit", "500MB", nanny=True)
    with open_pool(RunOptions("cpu", scheduler=cluster.address), train=partial(train, notes=notes)) as pool:
        hand_in(pool, 1, DIES, EATS, 98, 99)  # all with the one worker, whose every death counts against each of them
        found = dict(results(pool))
    lost = found.pop(DIES)
    assert isinstance(lost, Failure)
    assert lost.status == "failed"
    assert lost.error.startswith("the worker process died 3 times while it trained this pack, last at ")
    assert {seed: [outcome.steps for outcome in outcomes] for seed, outcomes in found.items()} == {
        seed: [seed] for seed in (1, EATS, 98, 99)
    }
    # The first may run again: its worker can die of the second with the result not fetched yet.
    assert [len(tries(notes, seed)) for seed in (DIES, EATS, 98, 99)] == [3, 2, 1, 1]


def test_a_worker_that_wakes_too_late_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    notes, said, told = tmp_path / "notes", list[str](), set[tuple[int, int, int]]()

    def heard(pack: Pack, step: int, steps: int) -> None:
        told.add((pack[0].seed, step, steps))

    worker, address = cluster.worker()
    fake = partial(train, notes=notes)
    with open_pool(RunOptions("cpu", scheduler=cluster.address), train=fake, progress=heard, say=said.append) as pool:
        hand_in(pool, HANGS, 93)
        wait_until(lambda: tries(notes, HANGS), "the pack to begin")
        worker.send_signal(signal.SIGSTOP)
        wait_until(lambda: address not in cluster.workers, "the scheduler to give it up")
        finished = pool.finished()
        found = []
        background = threading.Thread(target=lambda: found.extend(finished))
        background.start()
        wait_until(lambda: any("no worker is left" in line for line in said), "a word on that")
        other, _ = cluster.worker()
        wait_until(lambda: len(tries(notes, HANGS)) == 2, "the pack to begin elsewhere")
        worker.send_signal(signal.SIGCONT)
        worker.wait(timeout=60)  # it ends, although its pack could go on for ever
        (tmp_path / "go").touch()
        background.join(timeout=60)
    assert [(pack[0].seed, [outcome.steps for outcome in result]) for pack, result in found] == [
        (HANGS, [HANGS]),
        (93, [93]),
    ]
    assert tries(notes, HANGS) == [worker.pid, other.pid]
    assert {(HANGS, 0, 0), (HANGS, 1, 2), (93, 0, 0)} <= told
    assert sum("no worker is left" in line for line in said) == 1


# ---- what is said when connecting ----


def test_workers_without_mclab_are_one_line(cluster: Cluster, tmp_path: Path) -> None:
    said: list[str] = []
    with open_pool(
        RunOptions("cpu", scheduler=cluster.address), train=partial(train, notes=tmp_path / "n"), say=said.append
    ) as pool:
        assert said == [f"warning: no worker is connected to {cluster.address} yet; the packs wait until one connects"]
        hand_in(pool, 1)
        _, address = cluster.worker(PYTHONPATH=without_mclab(tmp_path))
        with pytest.raises(
            ConfigError, match=r"a worker reports .*mclab.*; install mclab .* the same command runs the rest"
        ):
            results(pool)
    with pytest.raises(ConfigError, match="1 of 1 workers cannot import mclab") as caught:
        open_pool(RunOptions("cpu", scheduler=cluster.address)).__enter__()
    assert address in str(caught.value)
    assert "\n" not in str(caught.value)


def test_versions_that_differ_are_named(cluster: Cluster, tmp_path: Path) -> None:
    info = tmp_path / "torch-9.9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9\n")
    cluster.worker(PYTHONPATH=str(tmp_path))
    cluster.worker("--nthreads", "3")
    said: list[str] = []
    with open_pool(RunOptions("cpu", scheduler=cluster.address), say=said.append):
        pass
    threads, torch = said[-2:]
    assert threads.startswith("warning: 1 of 2 workers have up to 3 threads but train only one pack at a time;")
    assert torch.startswith("warning: the version of torch is 9.9.9 on 1 of 2 workers (")


def test_device_and_number_are_the_workers_own(cluster: Cluster) -> None:
    asked = RunOptions(scheduler=cluster.address)
    with pytest.raises(ConfigError, match=r"no worker at .* has told yet whether it has a GPU; give cuda or cpu"):
        resolved(asked)
    assert worker_count(asked) == 1
    for _ in range(2):
        cluster.worker(CUDA_VISIBLE_DEVICES="")
    assert resolved(asked) == replace(asked, device="cpu")
    other = replace(asked, device="cuda")
    assert resolved(other) == other  # whatever this machine has
    assert worker_count(other) == 2

"""Where packs run: the same results everywhere, a death costs a retry, nothing is left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import pytest

from mclab.config.options import Keep, RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.workers import Failure, Pack, Pool, open_pool, worker_count
from mclab.workers.work import work

#: Seeds with a fate in `train`.
DIES_ONCE, DIES_ALWAYS, RAISES, SHORT_OF_MEMORY = 90, 91, 92, 93
CPU = RunOptions("cpu")


def pack_of(*seeds: int) -> tuple[RunConfig, ...]:
    return tuple(RunConfig(seed=seed) for seed in seeds)


class OutOfMemoryError(RuntimeError):
    """Like torch's, by name."""


def train(
    runs: Sequence[RunConfig],
    *,
    device: str,
    progress: Callable[[int, int], None] | None = None,
    keep: Keep | None = None,
    notes: Path,
) -> list[Outcome]:
    seed = runs[0].seed
    with open(notes, "a") as file:
        file.write(f"{seed}\n")
    if seed == DIES_ALWAYS or (seed == DIES_ONCE and notes.read_text().split().count(str(seed)) == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == RAISES:
        raise KeyError("a\nlong story")
    if seed == SHORT_OF_MEMORY:
        raise OutOfMemoryError("tried to allocate 8 GiB")
    if progress:
        progress(1, 2)
    return [Outcome("done", steps=run.seed * 2, provenance={"device": device, "keep": keep}) for run in runs]


def results(pool: Pool, packs: Sequence[tuple[RunConfig, ...]], priorities: Sequence[float] | None = None) -> list:
    for number, pack in enumerate(packs):
        pool.submit(pack, priority=priorities[number] if priorities else 0)
    return [(tuple(run.seed for run in pack), result) for pack, result in pool.finished()]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


# ---- this process ----


def test_in_process_keeps_the_order_and_takes_packs_meanwhile(notes: Path) -> None:
    told: list[tuple[Pack, int, int]] = []
    ticks = open_pool(CPU, train=partial(train, notes=notes), progress=lambda *step: told.append(step))
    with ticks as pool:
        pool.submit(pack_of(1, 2))
        pool.submit(pack_of(3), priority=9)
        seen = []
        for pack, result in pool.finished():
            seen.append((pack, [outcome.steps for outcome in result]))
            if len(seen) == 1:
                pool.submit(pack_of(4))
    assert seen == [(pack_of(1, 2), [2, 4]), (pack_of(3), [6]), (pack_of(4), [8])]
    assert told == [(pack, *step) for pack, _ in seen for step in ((0, 0), (1, 2))]


def test_failures_are_one_line(notes: Path) -> None:
    fake = partial(train, notes=notes)
    failed = work(pack_of(RAISES), CPU, fake)
    assert isinstance(failed, Failure)
    assert failed.status == "failed"
    assert failed.error.startswith("KeyError: 'a\\nlong story' (test_pool.py:")
    assert work(pack_of(SHORT_OF_MEMORY), CPU, fake).status == "oom"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MemoryError(), "oom"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
            "oom",
        ),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "failed"),
    ],
)
def test_what_counts_as_out_of_memory(error: Exception, status: str) -> None:
    def fake(runs: object, *, device: str, progress: object = None, keep: object = None) -> list[Outcome]:
        raise error

    assert work(pack_of(0), CPU, fake).status == status


def test_torch_itself_is_out_of_memory() -> None:
    torch = pytest.importorskip("torch")

    def fake(runs: object, *, device: str, progress: object = None, keep: object = None) -> list[Outcome]:
        torch.empty(2**60)
        return []

    assert work(pack_of(0), CPU, fake).status == "oom"


def test_as_many_torch_threads_as_asked_for_on_cpu_and_the_callers_setting_kept() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)

    def fake(runs: object, *, device: str, progress: object = None, keep: object = None) -> list[Outcome]:
        return [Outcome("done", steps=torch.get_num_threads())]

    try:
        found = [work(pack_of(0), RunOptions(*how), fake)[0].steps for how in (("cpu",), ("cpu", 1, None, 1, 3))]
        assert found == [1, 3]
        assert work(pack_of(0), RunOptions("cuda", threads=3), fake)[0].steps == 2
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_worker_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert worker_count(RunOptions("cpu", 3)) == 3
    assert 1 <= worker_count(CPU) <= (os.cpu_count() or 1)
    monkeypatch.setattr("mclab.workers.pool.cores", lambda: 8)
    assert [worker_count(RunOptions("cpu", threads=threads)) for threads in (1, 3, 8, 9)] == [8, 2, 1, 1]
    assert worker_count(RunOptions("cpu", 5, threads=8)) == 5
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    assert worker_count(RunOptions("cuda", threads=4)) == 2
    assert worker_count(RunOptions("cuda:1")) == 1
    with pytest.raises(ConfigError, match="there is no cuda:2, this process sees 2 GPUs"):
        worker_count(RunOptions("cuda:2"))


def test_each_worker_sees_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    from mclab.workers.local import _environments

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    seen = [environment["CUDA_VISIBLE_DEVICES"] for environment in _environments(3, RunOptions("cuda"))]
    assert seen == ["4", "6", "4"]
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in _environments(2, RunOptions("cuda:1"))] == ["6", "6"]
    assert "CUDA_VISIBLE_DEVICES" not in _environments(1, CPU)[0]
    assert _environments(1, RunOptions("cpu", threads=3))[0]["OMP_NUM_THREADS"] == "3"


# ---- local processes ----


def test_local_processes_give_what_one_process_gives_and_a_death_costs_a_retry(notes: Path, tmp_path: Path) -> None:
    fake, quiet = partial(train, notes=notes), partial(train, notes=tmp_path / "others")
    main = sys.modules["__main__"]
    script = (main.__dict__.get("__file__"), main.__spec__)
    environment, packs = dict(os.environ), [pack_of(1, 2), pack_of(3), pack_of(RAISES), pack_of(4)]
    keep, told = Keep(tmp_path / "checkpoints", weights=True), list[tuple[Pack, int, int]]()
    with open_pool(CPU, train=quiet, keep=keep) as pool:
        expected = dict(results(pool, packs))
    assert expected[3,][0].provenance["keep"] == keep
    with open_pool(CPU, 2, train=fake, keep=keep, progress=lambda *step: told.append(step)) as pool:
        assert dict(results(pool, packs)) == expected
        assert len(active_children()) == 2
        found = dict(results(pool, [pack_of(DIES_ONCE), pack_of(5)]))
        assert [found[seed,][0].steps for seed in (DIES_ONCE, 5)] == [2 * DIES_ONCE, 10]
        [((seed,), lost)] = results(pool, [pack_of(DIES_ALWAYS)])
        assert (seed, lost.status) == (DIES_ALWAYS, "failed")
        assert lost.error.startswith("the worker process died 3 times while it trained this pack, last at ")
    assert {(pack, *step) for pack in (pack_of(1, 2), pack_of(3)) for step in ((0, 0), (1, 2))} <= set(told)
    assert told.count((pack_of(DIES_ALWAYS), 0, 0)) <= 3
    noted = notes.read_text().split()
    assert [noted.count(str(seed)) for seed in (DIES_ONCE, 5, DIES_ALWAYS)] == [2, 1, 3]
    assert not active_children()
    assert dict(os.environ) == environment
    assert (main.__dict__.get("__file__"), main.__spec__) == script


SCRIPT = """
# No `if __name__ == "__main__"`: the workers must not run this file.
import os, signal
from mclab.config.options import RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.workers import open_pool

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background without it

def say(*words):  # several processes write to the one pipe
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

say("script")

def train(runs, *, device, progress=None, keep=None):
    say("busy" if runs[0].seed else "first")
    if runs[0].seed:
        signal.pause()
    return [Outcome("done")]

with open_pool(RunOptions("cpu"), 2, train=train) as pool:
    for seed in range(4):
        pool.submit((RunConfig(seed=seed),), priority=-seed)
    for pack, result in pool.finished():
        say("got", pack[0].seed)
"""


@pytest.mark.parametrize("how", ["SIGINT to all", "SIGKILL"])
def test_no_process_outlives_its_parent(tmp_path: Path, how: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    with started(tmp_path) as parent:
        assert parent.stdout is not None
        lines = [parent.stdout.readline().strip() for _ in range(5)]
        assert sorted(lines) == ["busy", "busy", "first", "got 0", "script"]
        number = signal.Signals[how.split()[0]]
        if how.endswith("all"):
            os.killpg(parent.pid, number)
        else:
            parent.send_signal(number)
        # Workers hold the same pipes: this returns when the last of them is gone.
        rest, errors = parent.communicate(timeout=120)  # a guard against hangs, not a bound
    assert rest == ""
    assert parent.returncode == -number
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1
        assert errors.endswith("KeyboardInterrupt\n")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@contextmanager
def started(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The script, and whatever becomes of the test no process of its group in the end."""
    script = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with script:
        try:
            yield script
        finally:
            with suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)


# ---- a cluster elsewhere ----


def test_a_scheduler_that_the_user_runs(notes: Path) -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
        ) as cluster,
        open_pool(RunOptions("cpu", scheduler=cluster.scheduler_address), train=partial(train, notes=notes)) as pool,
    ):
        found = dict(results(pool, [pack_of(1), pack_of(RAISES), pack_of(2, 3)]))
    assert [outcome.steps for outcome in found[2, 3]] == [4, 6]
    assert found[RAISES,].status == "failed"


def test_no_scheduler_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mclab.workers.cluster._PATIENCE", 0.2)
    for address in ("tcp://127.0.0.1:9", "nonsense://x:9"):
        with pytest.raises(ConfigError, match=f"scheduler: no Dask scheduler answers at {address}") as caught:
            open_pool(RunOptions("cpu", scheduler=address)).__enter__()
        assert "\n" not in str(caught.value)


def test_importing_the_workers_loads_nothing_heavy() -> None:
    code = "import sys, mclab.workers; print(sorted({'torch', 'dask', 'distributed'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

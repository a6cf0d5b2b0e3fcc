"""How long a command takes, and how that is said."""

import os

import dask.system
import pytest

from mclab.config.run import RunConfig
from mclab.runner.eta import Ahead
from mclab.runner.history import History, Work
from mclab.runner.time_range import Countdown, TimeRange, range_text, starting, time_range, time_text
from mclab.workers.cores import Processors, cores, processors
from tests.stored import stored_run

IDLE = Processors(count=8, cores=4, load=0.5)
WORK = Work(100.0, 50.0, 200.0, 1.0)
STORED = History([stored_run(RunConfig(), wall_s=5.0, steps=RunConfig().train.steps)])


def of(
    workers: int, history: History | None = None, here: Processors = IDLE, threads: int = 1, beside: float = 0
) -> TimeRange:
    return time_range(WORK, history or History(), workers, threads, here, beside)


def test_workers_share_the_work() -> None:
    one, four = of(1), of(4)
    assert (one.low, one.high) == (50.0, 200.0)
    assert four.low == pytest.approx(50 / 4)
    assert 200 / 4 < four.high < 200 / 4 + 2  # the longest run may begin last


def test_workers_beyond_the_cores_make_nothing_faster() -> None:
    assert of(8) == of(4)
    assert of(4, threads=4) == of(1)
    assert of(8, STORED).high == of(4, STORED).high
    assert of(8, STORED).low < of(4, STORED).low  # their times may hold it already


def test_one_run_takes_as_long_on_many_workers() -> None:
    alone = time_range(Work(100.0, 50.0, 200.0, 100.0), History(), 4, 1, IDLE)
    assert (alone.low, alone.high) == (50.0, 200.0)


def test_other_programs_make_it_longer_and_are_told() -> None:
    full = Processors(count=2, cores=2, load=16.0)
    free = Processors(count=2, cores=2, load=1.0)
    assert of(2, here=full).high == pytest.approx(9 * of(2, here=free).high)
    assert of(2, here=full).low == pytest.approx(3 * of(2, here=free).low)
    assert of(2, STORED, full).high == pytest.approx(3 * of(2, STORED, free).high)
    assert of(2, STORED, full).low == of(2, STORED, free).low
    assert of(2, here=full).basis == "a rough guess, as no runs are stored; other programs are using this machine"
    assert of(2, STORED, free).basis == "from 1 stored run"


def test_the_start_of_workers_counts() -> None:
    assert starting(1, IDLE) == 0
    assert 2 < starting(2, IDLE) == starting(4, IDLE) < starting(16, IDLE) < 20
    assert of(2, beside=starting(2, IDLE)).low > of(2).low + 2


def test_ranges_in_words() -> None:
    said = [range_text(low, high) for low, high in ((37.2, 121.0), (4.1, 9.0), (40, 41), (100, 9000), (0.1, 0.2))]
    assert said == ["35 s to 2 min", "4 s to 9 s", "40 s", "2 min to 2.5 h", "1 s"]
    assert time_text(TimeRange(40, 120, 24), "cpu", 2) == "about 40 s to 2 min on 2 CPU workers (from 24 stored runs)"
    assert time_text(TimeRange(40, 120, 1), "cuda", 1) == "about 40 s to 2 min on 1 GPU worker (from 1 stored run)"
    assert time_text(None, "cuda", 1) == "the time is unknown, because no run on this device is stored"


def test_a_range_that_passes() -> None:
    now = [5.0]
    left = Countdown(TimeRange(40, 120), lambda: now[-1])
    assert left.ahead() == Ahead(0.0, 120, 40)
    now.append(65.0)
    assert left.ahead() == Ahead(0.0, 60, 0.0)
    now.append(125.0)
    assert left.ahead() is None
    assert Countdown(None).ahead() is None


def test_the_cores_of_this_process() -> None:
    """As Dask counts them, which is slow to import."""
    assert cores() == dask.system.cpu_count()
    here, allowed = processors(), os.sched_getaffinity(0)
    assert 1 <= here.cores <= cores() <= here.count
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert (cores(), processors().cores) == (1, 1)
    finally:
        os.sched_setaffinity(0, allowed)

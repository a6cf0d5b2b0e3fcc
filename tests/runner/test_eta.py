"""How right the time left is, on grids whose clock, costs and wrong predictions are made up."""

import heapq
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from mclab.config.run import RunConfig
from mclab.runner.estimate import after_training, seconds
from mclab.runner.eta import Ahead, Eta, Job

#: Reports of a run, and the share of it that comes after the last one.
REPORTS, TAIL = 12, 0.1
PROCESSES, SELECT, SHAPES = (1, 2, 8), (0, 2), ((3, 5), (6, 5), (12, 4))


class Grid:
    """A grid of `cells` kinds, their costs up to a factor of ten apart, and what was predicted of them.

    All predictions are wrong by one factor from 1/3 to 3, and those of a kind by up to `apart` more; runs of a kind
    differ by 2 %. With `select` the first so many seeds of two candidates come first, then the other seeds of one.
    """

    def __init__(self, number: int, cells: int, seeds: int, processes: int, select: int, apart: float) -> None:
        self.random = Random(number)
        self.wrong = 3 ** self._around(1)
        self.jobs = [self._job(str(cell)) for cell in range(cells)]
        self.factors = [self.wrong * (1 + self._around(apart)) for _ in self.jobs]
        self.later = dict.fromkeys(range(cells), seeds - select) if select else {}
        self.open = dict.fromkeys(range(cells), 2 * select or seeds)
        self.now, self.processes, self.eta = 0.0, processes, Eta(processes, lambda: self.now)
        self.waiting: list[tuple[float, int, int]] = []
        self.seen: set[int] = set()
        self.count = 0
        for cell, runs in self.open.items():
            self._add(cell, runs)

    def _around(self, spread: float) -> float:
        return spread * (2 * self.random.random() - 1)

    def _job(self, kind: str) -> Job:
        cost = 10 ** self.random.random()
        return Job(kind, cost, TAIL, cost)

    def _add(self, cell: int, runs: int) -> None:
        for _ in range(runs):
            self.count += 1
            self.eta.add(self.count, self.jobs[cell])
            first = -self.jobs[cell].priority if self.processes > 1 else 0.0
            heapq.heappush(self.waiting, (first, self.count, cell))

    def moments(self) -> Iterator[tuple[float, Ahead | None, bool]]:
        """The time, what is said to be ahead, and whether a run of every kind was seen, at 40 or so random moments."""
        events: list[tuple[float, int, int, int]] = []
        running = 0
        while True:
            while self.waiting and running < self.processes:
                _, run, cell = heapq.heappop(self.waiting)
                running += 1
                taken = self.jobs[cell].cost * self.factors[cell] * (1 + self._around(0.02))
                self.eta.step(run, 0, 0)
                for report in range(REPORTS + 1):
                    heapq.heappush(events, (self.now + taken * (1 - TAIL) * report / REPORTS, run, cell, report))
                heapq.heappush(events, (self.now + taken, run, cell, -1))
            if not events:
                return
            at, run, cell, report = heapq.heappop(events)
            if self.random.random() < 40 / (self.count * REPORTS):
                self.now += (at - self.now) * self.random.random()
                later = [([self.jobs[cell]] * 2, runs) for cell, runs in self.later.items()]
                yield self.now, self.eta.ahead(later), len(self.seen) == len(self.jobs)
            self.now = at
            if report >= 0:
                self.eta.step(run, report, REPORTS)
                self.seen |= {cell} if report else set()
                continue
            self.eta.end(run)
            running -= 1
            self.open[cell] -= 1
            if not self.open[cell]:
                self._add(cell, self.later.pop(cell, 0))


def worst(grid: Grid, *, when_all_seen: bool = False) -> float:
    """The largest |said / true - 1| after a tenth of the time; of the last hundredth seconds alone would count."""
    moments = list(grid.moments())
    end = grid.now
    return max(
        abs((ahead.seconds if ahead else 0.0) / (end - at) - 1)
        for at, ahead, all_seen in moments
        if 0.1 * end <= at <= 0.99 * end and (all_seen or not when_all_seen)
    )


def seconds_ahead(eta: Eta) -> float:
    """The time that is said to be left."""
    ahead = eta.ahead()
    assert ahead is not None
    return ahead.seconds


@pytest.mark.parametrize(("processes", "select"), list(product(PROCESSES, SELECT)))
def test_within_a_third_where_predictions_are_wrong_by_one_factor_and_kinds_by_some(
    processes: int, select: int
) -> None:
    """One factor of up to 3 for all, and 15 % to either side for each kind: at every moment after a tenth."""
    for number, (cells, seeds) in enumerate(SHAPES * 3):
        assert worst(Grid(number, cells, seeds, processes, select, 0.15)) < 1 / 3, number


@pytest.mark.parametrize(("processes", "select"), list(product(PROCESSES, SELECT)))
def test_within_a_third_once_every_kind_was_seen_where_kinds_are_further_apart(processes: int, select: int) -> None:
    """30 % to either side. Before, nobody can tell: the first kind may be at one end, all the others at the other."""
    for number, (cells, seeds) in enumerate(SHAPES * 3):
        assert worst(Grid(number, cells, seeds, processes, select, 0.3), when_all_seen=True) < 1 / 3, number


# ---- by hand ----


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_by_hand() -> None:
    """Two runs, predicted 10 s each, that take 20: the first is at half after 10 s, so 10 + 20 s are left."""
    clock = Clock()
    eta = Eta(1, clock)
    eta.add("a", Job("k", 10.0))
    eta.add("b", Job("k", 10.0))
    assert eta.ahead() is None
    eta.step("a", 0, 0)
    eta.step("a", 0, 100)
    clock.now = 10.0
    assert eta.ahead() is None
    eta.step("a", 50, 100)
    assert eta.ahead() == Ahead(pytest.approx(0.25), pytest.approx(30.0))
    clock.now = 20.0
    eta.end("a")
    assert eta.ahead() == Ahead(pytest.approx(0.5), pytest.approx(20.0))
    eta.step("b", 0, 0)
    clock.now = 35.0  # it says nothing of itself; its time counts
    assert eta.ahead() == Ahead(pytest.approx(35 / 40), pytest.approx(5.0))
    clock.now = 50.0
    assert seconds_ahead(eta) == 0
    eta.end("b")
    assert eta.ahead([([Job("k", 5.0), Job("k", 15.0)], 3)]) == Ahead(pytest.approx(50 / 125), pytest.approx(75.0))


def test_a_resumed_run_counts_from_where_it_began() -> None:
    """From step 80 of 100 on, 20 steps take 2 s: a whole run takes 10."""
    clock = Clock()
    eta = Eta(1, clock)
    for key in "ab":
        eta.add(key, Job("k", 1.0))
    eta.step("a", 0, 0)
    eta.step("a", 80, 100)
    clock.now = 1.0
    eta.step("a", 90, 100)
    assert seconds_ahead(eta) == pytest.approx(1 + 10)
    clock.now = 2.0
    eta.end("a")
    assert seconds_ahead(eta) == pytest.approx(10)


def test_what_starts_again_and_what_is_given_back() -> None:
    clock = Clock()
    eta = Eta(2, clock)
    for key, cost in (("a", 10.0), ("b", 10.0), ("c", 20.0)):
        eta.add(key, Job("k", cost))
    for key in "ac":
        eta.step(key, 0, 0)
        eta.step(key, 0, 10)
    clock.now = 4.0
    eta.step("a", 4, 10)
    eta.end("c", done=False)  # too large for the memory, in a moment
    assert seconds_ahead(eta) == pytest.approx(10)  # b, beside the 6 s of a
    eta.step("a", 0, 0)  # its worker died
    eta.step("b", 0, 0)
    eta.step("b", 0, 10)
    clock.now = 5.0
    eta.step("b", 1, 10)
    assert seconds_ahead(eta) == pytest.approx(9)


def test_later_runs_wait_for_their_cell() -> None:
    """Two processes, one cell: its one later run cannot start before both of its candidates are through."""
    clock = Clock()
    eta = Eta(2, clock)
    for key, cost in (("a", 10.0), ("b", 30.0)):
        eta.add(key, Job(key, cost))
        eta.step(key, 0, 0)
        eta.step(key, 0, 10)
    clock.now = 5.0
    eta.step("a", 5, 10)
    eta.step("b", 1, 6)
    later = [([Job("a", 10.0), Job("b", 30.0)], 1)]
    alone, both = eta.ahead(), eta.ahead(later)
    assert alone is not None
    assert both is not None
    assert alone.seconds == pytest.approx(25)
    assert both.seconds == pytest.approx(25 + 20)


def test_the_test_is_a_small_share_of_a_run_and_grows_with_it() -> None:
    run = RunConfig()
    larger = RunConfig.model_validate({"eval": {"test": 10_000}})
    assert 0 < after_training(run) < after_training(larger) < 1
    assert seconds([larger]) * (1 - after_training(larger)) == pytest.approx(seconds([run]) * (1 - after_training(run)))


def test_a_machine_that_grows_faster_is_noticed() -> None:
    """Twenty alike runs: ten take 30 s each, then something else on the machine ends and they take 10."""
    clock = Clock()
    eta = Eta(1, clock)
    for key in range(20):
        eta.add(key, Job("k", 10.0))
    for key in range(13):
        eta.step(key, 0, 0)
        clock.now += 30.0 if key < 10 else 10.0
        eta.end(key)
    assert seconds_ahead(eta) == pytest.approx(70)

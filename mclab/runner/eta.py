"""Estimate when all jobs will be done, from their predicted times, corrected by the times measured so far.

A prediction is assumed to be wrong by a factor which is the same for all jobs of a kind, and similar for all kinds. So
a kind that has been measured, on finished or running jobs, has its own factor, and other kinds have the mean factor of
the measured kinds. The machine may become faster or slower: the times of the latest jobs, divided by what the factors
of their kinds predict, correct all estimates once more.
"""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from threading import Lock

#: The share of a mean job's cost that must be measured of a kind so that the factor of this kind and the mean factor
#: of all kinds have equal weights.
_TRUST = 0.05


@dataclass(frozen=True)
class Job:
    """A job before it starts: its `kind`, its predicted seconds `cost`, and its `priority`.

    `tail` is the share of the seconds that comes after the last step. The waiting job with the highest priority starts
    first.
    """

    kind: str
    cost: float
    tail: float = 0.0
    priority: float = 0.0


@dataclass(frozen=True)
class Ahead:
    """The progress of the work: the share `share` is done, and the rest takes `seconds`.

    Before anything is measured, `seconds` and `least` are the upper and the lower end of the predicted range. After
    that, `least` is `None`.
    """

    share: float
    seconds: float
    least: float | None = None


@dataclass
class _Running:
    """The start time of a running job, and its first and last report, each as (time, share of the job done)."""

    start: float
    first: tuple[float, float] | None = None
    last: tuple[float, float] | None = None


class Eta:
    """Estimates the remaining time from reports of jobs that start, advance and end. Several threads may use it.

    `processes` is the number of jobs that run at the same time; 0 means as many as are running.
    """

    def __init__(self, processes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._processes, self._clock, self._lock = processes, clock, Lock()
        self._waiting: dict[Hashable, Job] = {}
        self._running: dict[Hashable, tuple[Job, _Running]] = {}
        self._seen: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._latest: deque[tuple[str, float, float]] = deque(maxlen=max(2, processes))
        self._spent, self._added, self._count = 0.0, 0.0, 0

    def add(self, key: Hashable, job: Job) -> None:
        """Add a job, which waits until its first `step`."""
        with self._lock:
            self._waiting[key] = job
            self._added, self._count = self._added + job.cost, self._count + 1

    def step(self, key: Hashable, step: int, steps: int) -> None:
        """Report the progress of a job.

        `steps` 0 says that it starts, perhaps again; the next report gives its first step.
        """
        with self._lock:
            now = self._clock()
            if key in self._waiting:
                self._running[key] = (self._waiting.pop(key), _Running(now))
            if key not in self._running:
                return
            job, running = self._running[key]
            if not steps:
                self._running[key] = (job, _Running(now))
                return
            running.last = (now, step / steps * (1 - job.tail))
            running.first = running.first or running.last

    def end(self, key: Hashable, done: bool = True) -> None:
        """Report that a job has ended. With `done=False` it was given back unfinished, and its time is not used."""
        with self._lock:
            self._waiting.pop(key, None)
            job, running = self._running.pop(key, (None, None))
            if job is None or running is None:
                return
            taken = self._clock() - running.start
            self._spent += taken
            if done:
                cost = job.cost * (1 - (running.first or (0.0, 0.0))[1])
                self._latest.append((job.kind, taken, cost))
                _note(self._seen, job.kind, taken, cost)

    def ahead(self, later: Iterable[tuple[Sequence[Job], int]] = ()) -> Ahead | None:
        """Return the share of the work that is done and the remaining time; `None` if nothing is measured yet.

        `later` are jobs that will be added later, as groups (jobs, count): `count` jobs with the mean time of `jobs`
        are added once no job of the kinds of `jobs` is left.
        """
        with self._lock:
            factor = self._factors()
            if factor is None:
                return None
            now = self._clock()
            running = [_Task(0.0, self._left(job, each, factor(job.kind), now), job.kind) for job, each in self._jobs()]
            waiting = [_Task(job.priority, job.cost * factor(job.kind), job.kind) for job in self._waiting.values()]
            groups = [_Group.of(jobs, count, factor) for jobs, count in later if count]
            spent = self._spent + sum(now - each.start for _, each in self._jobs())
            processes = max(1, self._processes, len(running))
        todo = sum(each.seconds for each in (*running, *waiting, *(task for group in groups for task in group.tasks)))
        return Ahead(spent / (spent + todo) if spent + todo else 0.0, _last_end(processes, running, waiting, groups))

    def _jobs(self) -> Iterable[tuple[Job, _Running]]:
        return self._running.values()

    @staticmethod
    def _left(job: Job, running: _Running, factor: float, now: float) -> float:
        at, share = running.last or (running.start, 0.0)
        return max(0.0, job.cost * factor * (1 - share) - (now - at))

    def _factors(self) -> Callable[[str], float] | None:
        """Return a function from a kind to measured / predicted seconds; `None` if nothing is measured yet.

        In the mean of the factors, kinds that were measured long enough count equally, whatever they cost.
        """
        seen = defaultdict(lambda: [0.0, 0.0], {kind: [*pair] for kind, pair in self._seen.items()})
        latest = list(self._latest)
        for job, each in self._jobs():
            if each.first and each.last and each.last[1] > each.first[1]:
                latest.append((job.kind, each.last[0] - each.first[0], job.cost * (each.last[1] - each.first[1])))
                _note(seen, *latest[-1])
        known = {kind: (taken, cost) for kind, (taken, cost) in seen.items() if cost > 0}
        if not known:
            return None
        little = _TRUST * self._added / self._count
        weights = {kind: cost / (cost + little) for kind, (_, cost) in known.items()}
        mean = sum(weights[kind] * taken / cost for kind, (taken, cost) in known.items()) / sum(weights.values())

        def usual(kind: str) -> float:
            taken, cost = known.get(kind, (0.0, 0.0))
            return (taken + little * mean) / (cost + little)

        pace = sum(taken for _, taken, _ in latest) / sum(cost * usual(kind) for kind, _, cost in latest)
        return lambda kind: pace * usual(kind)


def _note(seen: dict[str, list[float]], kind: str, taken: float, cost: float) -> None:
    seen[kind][0] += taken
    seen[kind][1] += cost


@dataclass(frozen=True)
class _Task:
    """Work that occupies a process for `seconds`."""

    priority: float
    seconds: float
    kind: str


@dataclass(frozen=True)
class _Group:
    """Tasks that are added once no task of the kinds in `awaits` is left."""

    awaits: frozenset[str]
    tasks: tuple[_Task, ...]

    @classmethod
    def of(cls, jobs: Sequence[Job], count: int, factor: Callable[[str], float]) -> "_Group":
        """Return `count` tasks, each with the mean time and the mean priority of `jobs`."""
        seconds = sum(job.cost * factor(job.kind) for job in jobs) / len(jobs)
        priority = sum(job.priority for job in jobs) / len(jobs)
        return cls(frozenset(job.kind for job in jobs), (_Task(priority, seconds, jobs[0].kind),) * count)


def _last_end(processes: int, running: list[_Task], waiting: list[_Task], groups: list[_Group]) -> float:
    """Return the seconds until all tasks are done, by simulation: a free process takes the first waiting task."""
    open_ = Counter(task.kind for task in (*running, *waiting))
    ends = [(task.seconds, task.kind) for task in running]
    ready = _Ready(waiting)
    heapify(ends)
    now, changed = 0.0, True
    while True:
        if changed:
            come = [group for group in groups if not any(open_[kind] for kind in group.awaits)]
            groups = [group for group in groups if group not in come]
            ready.extend(task for group in come for task in group.tasks)
        while ready.tasks and len(ends) < processes:
            task = ready.pop()
            heappush(ends, (now + task.seconds, task.kind))
        if not ends:
            return now
        now, kind = heappop(ends)
        open_[kind] -= 1
        changed = not open_[kind] and bool(groups)


class _Ready:
    """A queue of tasks that may start: the highest priority comes first, and among equal ones the earliest."""

    def __init__(self, tasks: Iterable[_Task]) -> None:
        self.tasks: list[tuple[float, int, _Task]] = []
        self._count = 0
        self.extend(tasks)

    def extend(self, tasks: Iterable[_Task]) -> None:
        """Add tasks."""
        for task in tasks:
            self._count += 1
            heappush(self.tasks, (-task.priority, self._count, task))

    def pop(self) -> _Task:
        """Remove and return the task that starts next."""
        return heappop(self.tasks)[2]

"""What a search costs, from points drawn as a sampler might ask for them. Imports neither optuna nor torch."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError, Scalar
from mclab.plan.space import Space
from mclab.plan.space_axes import Axis
from mclab.plan.space_trials import from_dict
from mclab.runner.history import History, Work

#: The study in plain data, in the run folder.
TRIALS = "trials.json"
#: Points that are drawn, and how often it is tried where rules between keys refuse them.
DRAWN, TRIES = 24, 100


def work_of(space: Space, trials: int, history: History) -> Work:
    """What so many trials of the space cost."""
    return history.work(_drawn(space), trials * len(space.seeds))


def finished(out: Path, study: str) -> int:
    """How many trials of the study are over and count, as the folder's `trials.json` has it; 0 without one."""
    try:
        found = from_dict(json.loads((out / TRIALS).read_bytes()))
    except (OSError, ValueError, RecursionError):  # as if there were none: the search itself asks the study
        return 0
    taken = {trial.retry_of for trial in found.trials}
    counted = [trial for trial in found.trials if trial.counts and trial.number not in taken]
    return len(counted) if found.study == study else 0


def _drawn(space: Space) -> Iterator[RunConfig]:
    """One run of each of some points, the base's first; always the same ones."""
    yield space.base_point().runs[0]
    random, found = Random(0), 1
    for _ in range(TRIES):
        if found == DRAWN:
            return
        params: dict[str, Scalar] = {}
        for axis in space.axes:
            if space.asked(axis, params):
                params[axis.path] = _value(axis, random)
        with suppress(ConfigError):
            yield space.point(params).runs[0]
            found += 1


def _value(axis: Axis, random: Random) -> Scalar:
    """A value of the axis, evenly drawn, or evenly in its logarithm."""
    if axis.spec.kind == "choice":
        return random.choice(axis.spec.values)
    low, high, step = axis.spec.low, axis.spec.high, axis.spec.step
    assert low is not None
    assert high is not None
    even = random.random()
    value = low * (high / low) ** even if axis.spec.log else low + (high - low) * even
    if step is not None:
        value = low + round((value - low) / step) * step
    return round(value) if axis.spec.kind == "int" else axis.exact(value)

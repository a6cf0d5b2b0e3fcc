"""Estimate what a search costs, from points drawn as a sampler might draw them. Imports neither optuna nor torch."""

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

#: The file in the run folder that holds the study as plain data.
TRIALS = "trials.json"
#: The number of points to draw, and the largest number of attempts, since rules between keys may refuse a point.
DRAWN, TRIES = 24, 100


def work_of(space: Space, trials: int, history: History) -> Work:
    """Return the work that `trials` trials of the space need."""
    return history.work(drawn(space), trials * len(space.seeds))


def finished(out: Path, study: str) -> int:
    """Return how many finished trials of the study count, according to `trials.json` in `out`; 0 without that file."""
    try:
        found = from_dict(json.loads((out / TRIALS).read_bytes()))
    except (OSError, ValueError, RecursionError):  # without a readable file, the search itself asks the study
        return 0
    taken = {trial.retry_of for trial in found.trials}
    counted = [trial for trial in found.trials if trial.counts and trial.number not in taken]
    return len(counted) if found.study == study else 0


def drawn(space: Space) -> Iterator[RunConfig]:
    """Yield one run for each of up to `DRAWN` points, the base first; the points are the same in every call."""
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
    """Draw a value of the axis: uniformly, or on a logarithmic axis uniformly in the logarithm."""
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

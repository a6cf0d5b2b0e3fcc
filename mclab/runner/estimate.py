"""A rough guess at how long runs take, from their configs alone."""

from collections.abc import Iterable

from mclab.config.params import parameters
from mclab.config.run import RunConfig
from mclab.plan.size import tokens

#: Seconds on one core of a recent machine, fitted to runs of 1e3 to 1e5 parameters; good to a factor of two.
PER_STEP, PER_TOKEN, PER_TOKEN_AND_PARAMETER = 2e-3, 2e-6, 1.2e-10


def seconds(runs: Iterable[RunConfig]) -> float:
    """Seconds of these runs one after the other, on one CPU core."""
    return sum(map(_seconds, runs))


def _seconds(run: RunConfig) -> float:
    """Steps and tokens cost by the layer whatever its width; a token that is only read costs a third."""
    layers, looks = run.model.layers, run.train.steps / run.eval.every
    read = run.task.length * len(run.task.slices) * (looks * run.eval.valid + run.eval.test)
    token = layers * PER_TOKEN + parameters(run) * PER_TOKEN_AND_PARAMETER
    return run.train.steps * layers * PER_STEP + (tokens(run) + read / 3) * token


def duration(seconds: float) -> str:
    """A length of time as people say it: `40 s`, `12 min`, `3.5 h`, at most `> 1000 h`."""
    if seconds > 3600 * 1000:
        return "> 1000 h"
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

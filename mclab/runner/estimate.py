"""A rough guess at how long runs take, from their configs alone."""

from collections.abc import Iterable

from mclab.config.model import AttentionMixer, MemoryMixer, Mixer
from mclab.config.params import rough_parameters
from mclab.config.run import RunConfig
from mclab.plan.size import tokens

#: Seconds on one core of a recent machine, fitted to runs of 1e3 to 1e5 parameters; good to a factor of two. The first
#: two are for each layer.
PER_STEP, PER_TOKEN, PER_TOKEN_AND_PARAMETER = 0.9e-3, 0.9e-6, 1.5e-10
#: What a mixer's token costs a layer beside that: attention, and for each key; a read of kept memories, for each of
#: them, and for a gate that sees them. Within 15 % of one another's times at lengths 64 to 256 and widths 16 to 64.
ATTENTION, KEY = -0.6e-6, 3.7e-9
READ, KEPT, CONTEXT = 0.45e-6, 0.03e-6, 0.2e-6


def seconds(runs: Iterable[RunConfig]) -> float:
    """Seconds of these runs one after the other, on one CPU core."""
    return sum(map(_seconds, runs))


def after_training(run: RunConfig) -> float:
    """The share of a run's seconds that comes after its last step: the test."""
    return _test(run) / _seconds(run)


def _seconds(run: RunConfig) -> float:
    """Steps and tokens cost by the layer whatever its width."""
    looks = run.train.steps / run.eval.every
    training = run.train.steps * run.model.layers * PER_STEP + tokens(run) * _token(run)
    return training + _reading(run, looks * run.eval.valid) + _test(run)


def _test(run: RunConfig) -> float:
    exams = sum(exam.task.length * len(exam.slices) for exam in run.exams) * run.eval.test
    return _reading(run, run.eval.test) + exams * _token(run) / 3


def _token(run: RunConfig) -> float:
    layers = sum(PER_TOKEN + _mixing(mixer, run.task.length) for mixer in run.model.mixers)
    return layers + rough_parameters(run) * PER_TOKEN_AND_PARAMETER


def _mixing(mixer: Mixer, length: int) -> float:
    if isinstance(mixer, AttentionMixer):
        return ATTENTION + KEY * length
    if not isinstance(mixer, MemoryMixer) or mixer.aggregate in ("none", "residual"):
        return 0.0
    return READ + KEPT * -(-length // mixer.segment) + CONTEXT * (mixer.gate == "context")


def _reading(run: RunConfig, sequences: float) -> float:
    """Seconds to score so many sequences of each slice: a token that is only read costs a third."""
    return run.task.length * len(run.task.slices) * sequences * _token(run) / 3


def duration(seconds: float) -> str:
    """A length of time as people say it: `40 s`, `12 min`, `3.5 h`, at most `> 1000 h`."""
    if seconds > 3600 * 1000:
        return "> 1000 h"
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""Estimate roughly how long runs take, from their configs alone."""

from collections.abc import Iterable

from mclab.config.model import RULES, AttentionMixer, LogLinearMixer, MemoryMixer, Mixer, ModelConfig
from mclab.config.params import matrices, rough_parameters
from mclab.config.run import RunConfig
from mclab.plan.plan import tokens

#: Seconds per step and layer, per token and layer, and per token and parameter, on one core of a recent machine. Fitted
#: to runs with 1e3 to 1e5 parameters, 64 to 256 tokens and at least 8 sequences per step; right within a factor of two
#: there.
PER_STEP, PER_TOKEN, PER_TOKEN_AND_PARAMETER = 0.9e-3, 0.9e-6, 1.5e-10
#: Seconds per token and layer that a mixer adds. Attention: ATTENTION, and KEY for each key. A read of kept memories:
#: READ, KEPT for each memory and head, and CONTEXT for a gate that sees their content. With one head, the ratios of
#: times between mixers are right within 15 % at lengths 64 to 256 and widths 16 to 64.
ATTENTION, KEY = -0.6e-6, 3.7e-9
READ, KEPT, CONTEXT = 0.45e-6, 0.03e-6, 0.2e-6
#: Seconds that fast weights add, forward and backward, for rules that do more than add. Per token and number in the
#: fast weights: WRITE to write and read it, CHUNK / (tokens per chunk) for the step from chunk to chunk, KEPT_READ for
#: each kept memory that is read. Per step and matrix of the memory: CHUNK_CALL for each chunk that waits for the chunk
#: before it, KEPT_CALL for each kept memory. Right within a factor of two at depths 1 to 3, chunks of 1 to 64, lengths
#: of 64 and 256, and widths of 16 to 64.
WRITE, CHUNK, KEPT_READ = 0.3e-9, 12e-9, 0.25e-9
CHUNK_CALL, KEPT_CALL = 0.5e-3, 0.2e-3
#: Seconds per token and number in the fast weights that are added where the weights of every token are formed: FORM,
#: and MIX for each token of its chunk.
FORM, MIX = 7e-9, 0.06e-9
#: Seconds per token and channel of the layer, for each rate that a rule has per channel.
CHANNEL = 0.02e-6
#: Seconds of log-linear attention per head and pair of tokens in a chunk: PAIR, and SOLVE more where the delta rule
#: solves a linear system for them.
PAIR, SOLVE = 14e-9, 32e-9
#: Tokens per chunk: DECAYED for memories that only decay and for log-linear attention, ERASED for rules that erase.
DECAYED, ERASED = 64, 16


def seconds(runs: Iterable[RunConfig]) -> float:
    """Return the seconds that these runs take one after the other, on one CPU core."""
    return sum(map(_seconds, runs))


def after_training(run: RunConfig) -> float:
    """Return the share of a run's time that the test takes. The test comes after the last step."""
    return _test(run) / _seconds(run)


def in_training(run: RunConfig) -> float:
    """The share of a run's seconds that its training steps take."""
    return (run.train.steps * step_calls(run) + tokens(run) * _token(run)) / _seconds(run)


def step_calls(run: RunConfig) -> float:
    """Seconds of a step that depend on no width and no batch: they are for the operations that it starts."""
    return sum(PER_STEP + _calls(mixer, run.task.length) for mixer in run.model.mixers)


def _seconds(run: RunConfig) -> float:
    """Return the seconds of a run: training, evaluations, test.

    A step and a token have a cost per layer, whatever its width.
    """
    looks = run.train.steps / run.eval.every
    training = run.train.steps * step_calls(run) + tokens(run) * _token(run)
    return training + _reading(run, looks * run.eval.valid) + _test(run)


def _test(run: RunConfig) -> float:
    exams = sum(exam.task.length * len(exam.slices) for exam in run.test_variants) * run.eval.test
    return _reading(run, run.eval.test) + exams * _token(run) / 3


def _token(run: RunConfig) -> float:
    length = run.task.length
    layers = sum(
        PER_TOKEN + _mixing(run.model, mixer, length) + _fast(run.model, mixer, length) for mixer in run.model.mixers
    )
    return layers + rough_parameters(run) * PER_TOKEN_AND_PARAMETER


def _mixing(model: ModelConfig, mixer: Mixer, length: int) -> float:
    if isinstance(mixer, AttentionMixer):
        return ATTENTION + KEY * length
    if isinstance(mixer, LogLinearMixer):
        return _levels(model, mixer, length)
    if not isinstance(mixer, MemoryMixer):
        return 0.0
    beside = PER_TOKEN + ATTENTION + KEY * length if mixer.hybrid != "none" else 0.0
    if not mixer.weighs:
        return beside
    return beside + READ + KEPT * model.heads * mixer.segments(length) + CONTEXT * (mixer.gate == "context")


def _levels(model: ModelConfig, mixer: LogLinearMixer, length: int) -> float:
    """Return the seconds per token and layer of log-linear attention: pairs of tokens in the chunk, and reads of
    states.

    There is a state for each 1 among the binary digits of the number of earlier chunks; on average half of the digits
    are 1.
    """
    pair = PAIR + SOLVE * RULES[mixer.rule].erases
    states = (-(-length // DECAYED) - 1).bit_length() / 2
    return model.heads * (pair * min(length, DECAYED) + KEPT_READ * states * model.head_dim**2)


def _fast(model: ModelConfig, mixer: Mixer, length: int) -> float:
    """Return the seconds per token and layer that fast weights add."""
    if not isinstance(mixer, MemoryMixer) or mixer.rule.adds:
        return 0.0
    past = mixer.segments(length) - 1
    log = mixer.segmentation == "log" and past > 0
    read = past.bit_length() / 2 if log else past / 2
    # With `restart`, buckets of two or more segments are written separately: those of each size for half of the
    # tokens.
    writes = 1 + (past.bit_length() - 1) / 2 if log and mixer.init == "restart" else 1.0
    chunk = _chunk(mixer, length)
    write = WRITE + CHUNK / chunk + (FORM + MIX * chunk if mixer.rule.formed else 0.0)
    channels = CHANNEL * mixer.rule.channel_rates * model.dim
    return model.heads * matrices(model, mixer) * (writes * write + KEPT_READ * read) + writes * channels


def _calls(mixer: Mixer, length: int) -> float:
    """Return the seconds per step and layer that fast weights add for work that is not parallel, for any width."""
    if isinstance(mixer, LogLinearMixer):
        return CHUNK_CALL * -(-length // DECAYED)
    if not isinstance(mixer, MemoryMixer) or mixer.rule.adds:
        return 0.0
    segments = mixer.segments(length)
    each = -(-min(length, mixer.longest_segment if segments > 1 else length) // _chunk(mixer, length))
    log = mixer.segmentation == "log" and segments > 1
    waits = each * segments if mixer.init == "checkpoint" or log else each
    return (mixer.depth if mixer.deep else 1) * (CHUNK_CALL * waits + KEPT_CALL * (segments - 1))


def _chunk(mixer: MemoryMixer, length: int) -> int:
    """Return the number of tokens per chunk of a memory. Memories that only decay have long chunks."""
    segment = length if mixer.aggregate == "none" else min(length, mixer.longest_segment)
    own = ERASED if mixer.rule.erases else DECAYED
    return min(segment, mixer.chunk if mixer.rule.descends else own)


def _reading(run: RunConfig, sequences: float) -> float:
    """Return the seconds to score `sequences` sequences of each slice. Without training a token costs a third."""
    return run.task.length * len(run.task.slices) * sequences * _token(run) / 3


def duration(seconds: float) -> str:
    """Return a length of time as people say it: `40 s`, `12 min`, `3.5 h`, at most `> 1000 h`."""
    if seconds > 3600 * 1000:
        return "> 1000 h"
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

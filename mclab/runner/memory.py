"""Estimate roughly how much memory a run takes, from its config alone."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mclab.config.model import AttentionMixer, LogLinearMixer, MemoryMixer, Mixer, ModelConfig
from mclab.config.model.rules import layers
from mclab.config.params import matrices, rough_parameters
from mclab.config.run import RunConfig
from mclab.config.task import ArTask, MqarTask, TaskConfig

#: Floats per parameter during its update: the value, its decay, two moments, the step, and the gradient three times
#: (from torch, as one vector, clipped). The constants below count floats too, and were fitted to the peaks that
#: `python -m benchmarks memory` measures. The total is right within a factor of two on a CPU.
PER_PARAMETER = 13
#: Floats kept for the backward pass, per token and layer. MIXER: by the mixer and its norm, and CHANNELS: for each
#: rate per channel of a rule, both in widths of the model. MLP: by the MLP, in widths of its hidden layer.
MIXER, CHANNELS, MLP = 24, 10, 5
#: The number of copies that are kept of: the weight of a memory that a token sees (WEIGHTS), the score of a pair of
#: tokens (SCORES), the output of each layer of a kept memory that a token reads (READ).
WEIGHTS, SCORES, READ = 10, 4, 4
#: The number of copies of fast weights that are kept: of the state at the start of each chunk (STATES, twice as many
#: with momentum), of each kept memory (KEPT), and in Memora of the weights of each token (FORMED).
STATES, KEPT, FORMED = 3, 2, 3
#: Tokens per chunk: DECAYED for memories that only decay, linear memories and log-linear attention; ERASED for rules
#: that erase.
DECAYED, ERASED = 64, 16
#: The number of copies of the logits that are kept, with their softmax and gradients.
LOGITS = 4
#: The number of batches that are scored at once, and the share of a training step's activations that a layer then
#: holds, since it keeps nothing for a backward pass.
SCORED, FORWARD = 4, 0.4
#: The most sequences (MADE) and tokens (MADE_TOKENS) that are made at once, the integers per token that this takes
#: (MAKING), and the most tokens of a slice that are kept (KEPT_TOKENS).
MADE, MADE_TOKENS, MAKING, KEPT_TOKENS = 1024, 2**19, 4, 2**24
#: The integers of eight bytes that are kept for each training sequence, to count the test sequences among them.
SHOWN = 3
#: The bytes of a process before it trains, for Python and torch.
PROCESS = 250 * 2**20


class Memory(NamedTuple):
    """The bytes of memory that training takes on its device.

    `parameters` counts the parameters, their gradients and AdamW's moments; `activations` those of one step, with the
    kept memories and the values read from them; `logits` the logits of the scored tokens; `data` the token sequences.
    """

    parameters: int
    activations: int
    logits: int
    data: int

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(self)


def memory(run: RunConfig, replicas: int = 1) -> Memory:
    """Return the memory on the device of `replicas` runs of this shape in one pack, without the process itself."""
    size = 8 if run.train.precision == "fp64" else 4
    most = max(_scored(run), *(_step(run, part.task) for part in run.mix))
    scored = max(run.train.batch * _asked(part.task) for part in run.mix) * run.task.vocab
    floats = (PER_PARAMETER * rough_parameters(run), most, LOGITS * scored)
    parameters, activations, logits = (int(number * size * replicas) for number in floats)
    return Memory(parameters, activations, logits, data=8 * replicas * _data(run))


def _asked(task: TaskConfig) -> int:
    """Return the number of scored positions in a training sequence."""
    if isinstance(task, MqarTask):
        return max(task.pairs)
    if isinstance(task, ArTask):
        return task.length if task.loss == "all" else 1
    return task.answer_tokens


def _step(run: RunConfig, task: TaskConfig) -> float:
    """Return the number of floats that all layers together keep during one training step on `task`."""
    return sum(_layers(run.model, task.length, run.train.batch))


def _scored(run: RunConfig) -> float:
    """Return the number of floats that the largest layer holds while a slice is scored."""
    most = 0.0
    tokens = SCORED * run.train.batch * run.task.length
    for task, count in _slices(run):
        sequences = max(1, min(tokens // task.length, count))
        most = max(most, FORWARD * max(_layers(run.model, task.length, sequences)))
    return most


def _slices(run: RunConfig) -> Iterator[tuple[TaskConfig, int]]:
    yield run.task, max(run.eval.valid, run.eval.test)
    for exam in run.test_variants:
        yield exam.task, run.eval.test


def _data(run: RunConfig) -> int:
    """Return the number of integers: tokens of evaluation sets and of batches, and records of training sequences."""
    kept = sum(min(task.length * count, KEPT_TOKENS) * len(task.slices) for task, count in _slices(run))
    made = min(max(MADE, run.train.batch) * run.task.length, max(MADE_TOKENS, run.train.batch * run.task.length))
    return kept + MAKING * made + run.train.steps * (SHOWN * run.train.batch + 2)


def _layers(model: ModelConfig, length: int, sequences: int) -> Iterable[float]:
    """Return the number of floats that each layer keeps for `sequences` sequences."""
    mlp = MLP * model.mlp * model.dim
    sizes = {mixer: _mixer(model, mixer, length) for mixer in set(model.mixers)}
    return [sequences * (length * (MIXER * model.dim + mlp) + sizes[mixer]) for mixer in model.mixers]


def _mixer(model: ModelConfig, mixer: Mixer, length: int) -> float:
    """Return the number of floats that this mixer keeps for one sequence, in addition to what every mixer keeps."""
    if isinstance(mixer, AttentionMixer):
        return _window(model, mixer.window or 0, length)
    if isinstance(mixer, LogLinearMixer):
        chunks = -(-length // DECAYED)
        return model.heads * (SCORES * length * min(length, DECAYED) + STATES * chunks * model.head_dim**2)
    if not isinstance(mixer, MemoryMixer):
        return 0.0
    beside = _window(model, mixer.window, length) + MIXER * model.dim * length if mixer.hybrid != "none" else 0.0
    channels = CHANNELS * mixer.rule.channel_rates * model.dim * length
    gated = mixer.aggregate not in ("none", "residual")
    weights = WEIGHTS * model.heads * length * _columns(mixer, length) if gated else 0.0
    cached = _attention(model, mixer, length) if mixer.rule.adds else _fast(model, mixer, length)
    return beside + channels + weights + model.heads * cached


def _window(model: ModelConfig, window: int, length: int) -> float:
    """Return the floats that attention keeps for scores in a window, which is read in blocks; 0 without a window."""
    return 2.0 * model.heads * length * min(length, 2 * max(window, 32)) if 0 < window < length else 0.0


def _columns(mixer: MemoryMixer, length: int) -> int:
    """Return the number of memories of a sequence, the online memory included."""
    return mixer.segments(length) + 1


def _attention(model: ModelConfig, mixer: MemoryMixer, length: int) -> float:
    """Return the number of floats that the read of a linear memory keeps for one head.

    They are scores of all pairs of tokens, or scores within segments and states, whichever is cheaper to compute.
    """
    if mixer.aggregate == "none":
        return SCORES * length * min(length, DECAYED) + STATES * length / DECAYED * model.head_dim**2
    segments = mixer.segments(length)
    cached = SCORES * length * min(length, mixer.longest_segment) + STATES * segments * model.head_dim**2
    work = length * mixer.longest_segment + length * segments // 4 * model.head_dim
    return SCORES * length**2 if length**2 <= work else cached


def _fast(model: ModelConfig, mixer: MemoryMixer, length: int) -> float:
    """Return the number of floats of one head's fast weights, and of what is read from kept memories."""
    size, past = matrices(model, mixer), mixer.segments(length) - 1
    log = mixer.segmentation == "log" and past > 0
    restarts = log and mixer.init == "restart"
    writes = 1 + (past.bit_length() - 1) / 2 if restarts else 1.0
    segment = min(length, mixer.longest_segment) if past else length
    chunk = min(segment, mixer.chunk if mixer.rule.descends else ERASED if mixer.rule.erases else DECAYED)
    states = STATES * (1 + mixer.rule.momentum) * writes * length / chunk
    formed = FORMED * length * mixer.rule.formed
    read = past.bit_length() / 2 if log else past / 2
    if mixer.aggregate == "ssc" and mixer.route in ("hard", "explore"):  # other routes hold all reads for some time
        read = min(read, mixer.k + (mixer.route == "explore"))
    widths = sum(out for out, _ in layers(model.head_dim, mixer.depth if mixer.deep else 1))
    return size * (states + formed + KEPT * past) + READ * read * length * widths

"""A rough guess at how much memory a run takes, from its config alone."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mclab.config.model import AttentionMixer, LogLinearMixer, MemoryMixer, Mixer, ModelConfig
from mclab.config.model.rules import layers
from mclab.config.params import matrices, rough_parameters
from mclab.config.run import RunConfig
from mclab.config.task import ArTask, MqarTask, TaskConfig

#: Numbers of a parameter while it is updated: itself, decay, two moments; its gradient as torch gives it, as one
#: vector, clipped; the step. What follows is in numbers too, fitted to the peaks of `python -m benchmarks memory`;
#: their sum is good to a factor of two on a CPU.
PER_PARAMETER = 13
#: For each token of a step and layer, in widths of the model: what the mixer and its norm keep for the way back;
#: each rate of a channel, of rules that have such; what the MLP keeps, in its own width.
MIXER, CHANNELS, MLP = 24, 10, 5
#: Weights of the memories that a token sees; scores of pairs of tokens; what is read of a kept memory, a layer of it.
WEIGHTS, SCORES, READ = 10, 4, 4
#: Fast weights: states at the starts of chunks, once more with momentum; kept ones; Memora's, of every token.
STATES, KEPT, FORMED = 3, 2, 3
#: Tokens in a chunk of memories that only decay, of linear memories and log-linear attention; of rules that erase.
DECAYED, ERASED = 64, 16
#: Logits with their softmax and gradients.
LOGITS = 4
#: Batches that are scored at once, and what a layer holds of them that keeps nothing for a way back.
SCORED, FORWARD = 4, 0.4
#: The most sequences, and tokens, that are made at once, and what making one takes; tokens of a slice that are kept.
MADE, MADE_TOKENS, MAKING, KEPT_TOKENS = 1024, 2**19, 4, 2**24
#: Whole numbers of eight bytes for each sequence that was shown: to tell how many tests were among them.
SHOWN = 3
#: Bytes of a process before it trains: Python, torch.
PROCESS = 250 * 2**20


class Memory(NamedTuple):
    """Bytes: of parameters with gradients and AdamW's moments, of a step's activations with kept memories and what is
    read of them, of logits, of sequences."""

    parameters: int
    activations: int
    logits: int
    data: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)


def memory(run: RunConfig, replicas: int = 1) -> Memory:
    """What `replicas` runs of this shape that train as one model take on their device, without the process itself."""
    size = 8 if run.train.precision == "fp64" else 4
    most = max(_scored(run), *(_step(run, part.task) for part in run.mix))
    scored = max(run.train.batch * _asked(part.task) for part in run.mix) * run.task.vocab
    floats = (PER_PARAMETER * rough_parameters(run), most, LOGITS * scored)
    parameters, activations, logits = (int(number * size * replicas) for number in floats)
    return Memory(parameters, activations, logits, data=8 * replicas * _data(run))


def _asked(task: TaskConfig) -> int:
    """Positions of a training sequence that are scored."""
    if isinstance(task, MqarTask):
        return max(task.pairs)
    if isinstance(task, ArTask):
        return task.length if task.loss == "all" else 1
    return task.answer_tokens


def _step(run: RunConfig, task: TaskConfig) -> float:
    """Numbers that all layers keep of one step on a task."""
    return sum(_layers(run.model, task.length, run.train.batch))


def _scored(run: RunConfig) -> float:
    """Numbers that the largest layer holds while a slice is scored."""
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
    """Tokens of the sets that are kept and of the batches that are made at once; sequences that were shown."""
    kept = sum(min(task.length * count, KEPT_TOKENS) * len(task.slices) for task, count in _slices(run))
    made = min(max(MADE, run.train.batch) * run.task.length, max(MADE_TOKENS, run.train.batch * run.task.length))
    return kept + MAKING * made + run.train.steps * (SHOWN * run.train.batch + 2)


def _layers(model: ModelConfig, length: int, sequences: int) -> Iterable[float]:
    """Numbers that each layer keeps of so many sequences."""
    mlp = MLP * model.mlp * model.dim
    sizes = {mixer: _mixer(model, mixer, length) for mixer in set(model.mixers)}
    return [sequences * (length * (MIXER * model.dim + mlp) + sizes[mixer]) for mixer in model.mixers]


def _mixer(model: ModelConfig, mixer: Mixer, length: int) -> float:
    """Numbers that a mixer keeps of one sequence, in addition to those of every mixer."""
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
    """Scores within a window, in blocks of its length; without one torch keeps none."""
    return 2.0 * model.heads * length * min(length, 2 * max(window, 32)) if 0 < window < length else 0.0


def _columns(mixer: MemoryMixer, length: int) -> int:
    """Memories that a sequence keeps, the online one included."""
    return mixer.segments(length) + 1


def _attention(model: ModelConfig, mixer: MemoryMixer, length: int) -> float:
    """A linear memory's read for one head: scores of all pairs, or of a segment's and states. It takes the cheaper."""
    if mixer.aggregate == "none":
        return SCORES * length * min(length, DECAYED) + STATES * length / DECAYED * model.head_dim**2
    segments = mixer.segments(length)
    cached = SCORES * length * min(length, mixer.longest_segment) + STATES * segments * model.head_dim**2
    work = length * mixer.longest_segment + length * segments // 4 * model.head_dim
    return SCORES * length**2 if length**2 <= work else cached


def _fast(model: ModelConfig, mixer: MemoryMixer, length: int) -> float:
    """One head's fast weights, and what is read of kept ones."""
    size, past = matrices(model, mixer), mixer.segments(length) - 1
    log = mixer.segmentation == "log" and past > 0
    restarts = log and mixer.init == "restart"
    writes = 1 + (past.bit_length() - 1) / 2 if restarts else 1.0
    segment = min(length, mixer.longest_segment) if past else length
    chunk = min(segment, mixer.chunk if mixer.rule.descends else ERASED if mixer.rule.erases else DECAYED)
    states = STATES * (1 + mixer.rule.momentum) * writes * length / chunk
    formed = FORMED * length * mixer.rule.formed
    read = past.bit_length() / 2 if log else past / 2
    if mixer.aggregate == "ssc" and mixer.route in ("hard", "explore"):  # the others read all, if only for a while
        read = min(read, mixer.k + (mixer.route == "explore"))
    widths = sum(out for out, _ in layers(model.head_dim, mixer.depth if mixer.deep else 1))
    return size * (states + formed + KEPT * past) + READ * read * length * widths

"""Compute the numbers of parameters, state floats and multiply-adds by formulas, so that a plan does not need torch.

Tests compare parameters and state with real tensors.
"""

from collections.abc import Callable, Iterable

from mclab.config.model import AttentionMixer, MemoryMixer, Mixer, ModelConfig
from mclab.config.run import RunConfig


def parameters(run: RunConfig) -> int | None:
    """Return the number of parameters of the model.

    `None` if a part of the user's own code has an unknown number of them.
    """
    mixers = _total(_mixer(mixer, run.model, run.task.length) for mixer in run.model.mixers)
    return None if mixers is None else _around(run) + mixers


def rough_parameters(run: RunConfig) -> int:
    """Return `parameters`, where a mixer with an unknown number counts as four matrices [D, D].

    For estimates of cost.
    """
    guess = 4 * run.model.dim**2
    found = (_mixer(mixer, run.model, run.task.length) for mixer in run.model.mixers)
    return _around(run) + sum(guess if number is None else number for number in found)


def _around(run: RunConfig) -> int:
    """Return the number of parameters outside the mixers."""
    model, dim = run.model, run.model.dim
    mlp = dim + 3 * model.mlp * dim * dim if model.mlp else 0
    table = run.task.length * dim if model.position == "learned" else 0
    return run.task.vocab * dim + table + model.layers * (dim + mlp) + dim


def _mixer(mixer: Mixer, model: ModelConfig, length: int) -> int | None:
    if not isinstance(mixer, MemoryMixer):
        return mixer.parameters(model, length)
    if mixer.own:  # only its own code can count its parameters
        return None
    dim = model.dim
    connector = dim * dim if mixer.trained_scores and mixer.connector == "own" else 0
    slots = dim * model.heads * _slots(mixer, length) if mixer.read_gate == "input" else 0
    around = 4 * dim * dim + 3 * model.conv * dim + dim + (dim * dim if mixer.out_gate else 0)
    return around + connector + slots + _memory(model, mixer) + _hybrid(mixer, model, length)


#: The number of norms that each kind of hybrid adds.
NORMS = {"mal": 1, "mag": 2}


def _hybrid(mixer: MemoryMixer, model: ModelConfig, length: int) -> int:
    """Return the number of parameters that a hybrid adds to the memory."""
    if mixer.hybrid == "none":
        return 0
    return AttentionMixer(window=mixer.window).parameters(model, length) + NORMS[mixer.hybrid] * model.dim


def _memory(model: ModelConfig, mixer: MemoryMixer) -> int:
    """Return the number of parameters of the memory itself.

    These are the parameters of its rule; a deep memory also has W^0 and the gain of its norm.
    """
    rule = mixer.rule.parameters(model.dim, model.heads)
    if not mixer.deep:
        return rule
    return rule + model.heads * matrices(model, mixer) + (model.dim if mixer.memory_norm in ("rms", "soft") else 0)


def matrices(model: ModelConfig, mixer: MemoryMixer) -> int:
    """Return the number of entries of one head's memory."""
    return mixer.rule.size(model.head_dim, mixer.depth if mixer.deep else 1)


def _slots(mixer: MemoryMixer, length: int) -> int:
    """Return the number of slots of the input gate.

    There is one per segment; with buckets, one per bucket size and one for the online memory.
    """
    count = mixer.segments(length)
    return count if mixer.segmentation != "log" else (count - 1).bit_length() + 1


def state_floats(run: RunConfig) -> tuple[int | None, int | None]:
    """Return the size of the state in floats after a sequence of the task's length: (fixed, cached).

    The fixed part does not grow with the sequence: the last inputs of the convolutions, the online memory with all that
    its next write needs in the middle of a chunk and a segment, and its running pool. The cached part grows: the kept
    memories that the last segment reads and their pools, or the keys and values of attention. Buckets of `segmentation:
    log` that are still being written for later segments are not counted. `None` if a part of the user's own code holds
    an unknown state.
    """
    found = [_state(mixer, run) for mixer in run.model.mixers]
    return _total(fixed for fixed, _ in found), _total(cached for _, cached in found)


def _total(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None


def _state(mixer: Mixer, run: RunConfig) -> tuple[int | None, int | None]:
    model, length = run.model, run.task.length
    if not isinstance(mixer, MemoryMixer):
        return mixer.state(model, length)
    if "memory" in mixer.own:
        return None, None
    inputs = max(0, model.conv - 1) * 3 * model.dim
    window = 0 if mixer.hybrid == "none" else sum(AttentionMixer(window=mixer.window).state(model, length))
    pool = model.head_dim if mixer.scored else 0
    online, kept = _online(model, mixer) + pool, _kept(mixer, run) * (matrices(model, mixer) + pool)
    return inputs + window + model.heads * online, model.heads * kept


def _online(model: ModelConfig, mixer: MemoryMixer) -> int:
    """Return the number of floats of one head's online memory and of all else that its next write needs.

    That is the momentum; the weights at the start of the chunk, if gradients are taken there; the last keys and values.
    """
    copies = 1 + mixer.rule.momentum + (mixer.anchored and mixer.tokens_a_chunk > 1)
    return copies * matrices(model, mixer) + mixer.rule.lookback * 2 * model.head_dim


def _kept(mixer: MemoryMixer, run: RunConfig) -> int:
    """Return how many kept memories the last token reads in the test."""
    if run.eval.post_training is not None:
        return min(run.eval.post_training, -(-run.task.length // run.cached_after) - 1)
    past = mixer.segments(run.task.length) - 1
    return past if mixer.segmentation != "log" else past.bit_count()


#: Multiply-adds per token to write and read one head's memory of K by K entries, in multiples of K squared.
_SQUARES: dict[str, float] = {
    "linear": 2,
    "retnet": 3,
    "mamba2": 3,
    "swla": 4,
    "delta": 3,
    "gated_delta": 4,
    "rwkv7": 5,
    "memora": 5,
}
#: Multiply-adds per token for rules that may have several matrices: for one matrix as a multiple of K squared; for
#: several as a function of their total number of entries and of K squared.
_DESCENDING: dict[str, tuple[float, Callable[[float, float], float]]] = {
    "dla": (2, lambda size, square: 4 * size - 4 * square),
    "titans": (5, lambda size, square: 6 * size - 4 * square),
}


def multiply_adds(run: RunConfig) -> float | None:
    """Return the multiply-adds per token of the model's forward pass, as in docs/axes.md.

    This is the mean over a sequence of the task's length. Only leading terms count: norms, activations, convolutions
    and the additional work of writing in chunks are left out. `None` if the model has a mixer whose cost is not known
    here.
    """
    model, length = run.model, run.task.length
    mixers = [_mixer_cost(mixer, model, length) for mixer in model.mixers]
    known = [each for each in mixers if each is not None]
    if len(known) < len(mixers):
        return None
    return sum(known) + model.layers * 3 * model.mlp * model.dim**2 + run.task.vocab * model.dim


def _mixer_cost(mixer: Mixer, model: ModelConfig, length: int) -> float | None:
    if isinstance(mixer, AttentionMixer):
        window = min(mixer.window or length, length)
        seen = window - window * (window - 1) / (2 * length)
        return 4 * model.dim**2 + 2 * seen * model.dim
    if not isinstance(mixer, MemoryMixer) or mixer.hybrid != "none" or mixer.segmentation == "log":
        return None
    own = _memory_cost(mixer, model)
    if own is None:
        return None
    connector = model.dim**2 if mixer.trained_scores and mixer.connector == "own" else 0
    gate = model.dim**2 if mixer.out_gate else 0
    return 4 * model.dim**2 + connector + gate + model.heads * (own + _read_cost(mixer, model, length))


def _memory_cost(mixer: MemoryMixer, model: ModelConfig) -> float | None:
    """Return the number of multiply-adds per token to write and read one head's online memory.

    `None` for an unknown rule.
    """
    square = float(model.head_dim**2)
    if mixer.memory in _DESCENDING:
        single, deep = _DESCENDING[mixer.memory]
        return deep(matrices(model, mixer), square) if mixer.deep else single * square
    if mixer.memory == "vector":
        return 2.0 * model.head_dim
    return _SQUARES[mixer.memory] * square if mixer.memory in _SQUARES else None


def _read_cost(mixer: MemoryMixer, model: ModelConfig, length: int) -> float:
    """Return the multiply-adds per token to score and read one head's kept memories.

    A token sees half of them on average.
    """
    past = (mixer.segments(length) - 1) / 2
    read = min(mixer.k, past) if mixer.aggregate == "ssc" else past
    scored = past + 1 if mixer.aggregate == "ssc" or mixer.read_gate == "context" else 0
    return read * matrices(model, mixer) + scored * model.head_dim

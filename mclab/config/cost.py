"""Multiply-adds of a token, counted: what grows with the length apart from what the machine makes of it.

Forward pass, mean over a sequence of the task's length, leading terms, as the README's tables have them; writing a
memory in chunks, norms, activations and convolutions' small change are left out.
"""

from collections.abc import Callable

from mclab.config.model import AttentionMixer, MemoryMixer, Mixer, ModelConfig
from mclab.config.params import matrices
from mclab.config.run import RunConfig

#: What writes and reads one head's memory of K by K numbers, in multiples of K squared.
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
#: The same for memories of P numbers: of one matrix, and of several, in P and in K squared.
_DESCENDING: dict[str, tuple[float, Callable[[float, float], float]]] = {
    "dla": (2, lambda size, square: 4 * size - 4 * square),
    "titans": (5, lambda size, square: 6 * size - 4 * square),
}


def multiply_adds(run: RunConfig) -> float | None:
    """Of one token, in the whole model; `None` for a mixer that is not counted here."""
    model, length = run.model, run.task.length
    mixers = [_mixer(mixer, model, length) for mixer in model.mixers]
    known = [each for each in mixers if each is not None]
    if len(known) < len(mixers):
        return None
    return sum(known) + model.layers * 3 * model.mlp * model.dim**2 + run.task.vocab * model.dim


def _mixer(mixer: Mixer, model: ModelConfig, length: int) -> float | None:
    if isinstance(mixer, AttentionMixer):
        window = min(mixer.window or length, length)
        seen = window - window * (window - 1) / (2 * length)
        return 4 * model.dim**2 + 2 * seen * model.dim
    if not isinstance(mixer, MemoryMixer) or mixer.hybrid != "none" or mixer.segmentation == "log":
        return None
    own = _memory(mixer, model)
    if own is None:
        return None
    connector = model.dim**2 if mixer.taught and mixer.connector == "own" else 0
    gate = model.dim**2 if mixer.out_gate else 0
    return 4 * model.dim**2 + connector + gate + model.heads * (own + _reads(mixer, model, length))


def _memory(mixer: MemoryMixer, model: ModelConfig) -> float | None:
    """What writes and reads one head's online memory."""
    square = float(model.head_dim**2)
    if mixer.memory in _DESCENDING:
        single, deep = _DESCENDING[mixer.memory]
        return deep(matrices(model, mixer), square) if mixer.deep else single * square
    if mixer.memory == "vector":
        return 2.0 * model.head_dim
    return _SQUARES[mixer.memory] * square if mixer.memory in _SQUARES else None


def _reads(mixer: MemoryMixer, model: ModelConfig, length: int) -> float:
    """What reads one head's kept memories, half of which a token sees, and their scores."""
    past = (mixer.segments(length) - 1) / 2
    read = min(mixer.k, past) if mixer.aggregate == "ssc" else past
    scored = past + 1 if mixer.aggregate == "ssc" or mixer.read_gate == "context" else 0
    return read * matrices(model, mixer) + scored * model.head_dim

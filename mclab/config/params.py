"""Parameters and state by arithmetic, so that a plan can print them without torch. Tests compare with real tensors."""

from collections.abc import Iterable

from mclab.config.model import AttentionMixer, ConvMixer, MemoryMixer, Mixer, ModelConfig, ModuleMixer
from mclab.config.run import RunConfig


def parameters(run: RunConfig) -> int | None:
    """Trained numbers in the model; `None` where a module of the user's own has some that only it can count."""
    mixers = _total(_mixer(mixer, run.model, run.task.length) for mixer in run.model.mixers)
    return None if mixers is None else _around(run) + mixers


def rough_parameters(run: RunConfig) -> int:
    """As `parameters`, a module of the user's own taken for four matrices: what an estimate of cost needs."""
    guess = 4 * run.model.dim**2
    found = (_mixer(mixer, run.model, run.task.length) for mixer in run.model.mixers)
    return _around(run) + sum(guess if number is None else number for number in found)


def _around(run: RunConfig) -> int:
    """Everything but the mixers."""
    model, dim = run.model, run.model.dim
    mlp = dim + 3 * model.mlp * dim * dim if model.mlp else 0
    table = run.task.length * dim if model.position == "learned" else 0
    return run.task.vocab * dim + table + model.layers * (dim + mlp) + dim


def _mixer(mixer: Mixer, model: ModelConfig, length: int) -> int | None:
    dim = model.dim
    projections = 4 * dim * dim + 3 * model.conv * dim
    if isinstance(mixer, ModuleMixer):
        return None
    if isinstance(mixer, ConvMixer):
        return dim * dim + (mixer.kernel + 2) * dim
    if isinstance(mixer, AttentionMixer):
        return projections
    gate = "none" if mixer.aggregate in ("none", "residual") else mixer.gate
    connector = dim * dim if gate == "context" and mixer.connector == "own" else 0
    slots = dim * model.heads * _slots(mixer, length) if gate == "input" else 0
    memory = _memory(model, mixer)
    return projections + dim + connector + slots + memory + (dim * dim if mixer.out_gate else 0)


#: Rates that a memory makes of each token, for each head.
RATES = {"swla": 3, "dla": 1, "titans": 3}
#: Memories that descend a loss, of any depth.
GRADIENT = ("dla", "titans")
#: Hidden width of a deep memory in units of the head's.
EXPANSION = 4


def _memory(model: ModelConfig, mixer: MemoryMixer) -> int:
    """Trained numbers of the memory itself: rates with biases, W^0 and the norm's gain of deep ones, b of vector."""
    rates = RATES.get(mixer.memory, 0) * model.heads * (model.dim + 1)
    if mixer.memory == "vector":
        return model.dim
    if mixer.memory not in GRADIENT or mixer.depth == 1:
        return rates
    return rates + model.heads * matrices(model, mixer) + (model.dim if mixer.memory_norm == "rms" else 0)


def matrices(model: ModelConfig, mixer: MemoryMixer) -> int:
    """Numbers in one head's memory."""
    K = model.head_dim
    if mixer.memory == "vector":
        return K
    if mixer.memory not in GRADIENT or mixer.depth == 1:
        return K * K
    widths = [K, *[EXPANSION * K] * (mixer.depth - 1), K]
    return sum(out * into for out, into in zip(widths[1:], widths[:-1], strict=True))


def _slots(mixer: MemoryMixer, length: int) -> int:
    """Slots of the input gate: a segment each, or the online memory and a bucket size each."""
    count = segments(mixer, length)
    return count if mixer.segmentation == "constant" else (count - 1).bit_length() + 1


def segments(mixer: MemoryMixer, length: int) -> int:
    """Segments of a sequence of `length` tokens; one without caching."""
    return 1 if mixer.aggregate == "none" else -(-length // mixer.segment)


def state_floats(run: RunConfig) -> tuple[int | None, int | None]:
    """Floats that a sequence of the task's length leaves behind for its next token: (fixed, cached).

    Fixed does not grow with the sequence: convolution taps, the online memory, its running pool. Cached does: kept
    memories and their pools, or attention's keys and values. `None` where a module of the user's own holds some.
    """
    found = [_state(mixer, run.model, run.task.length) for mixer in run.model.mixers]
    return _total(fixed for fixed, _ in found), _total(cached for _, cached in found)


def _total(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    known = [number for number in found if number is not None]
    return sum(known) if len(known) == len(found) else None


def _state(mixer: Mixer, model: ModelConfig, length: int) -> tuple[int | None, int | None]:
    if isinstance(mixer, ModuleMixer):
        return None, None
    if isinstance(mixer, ConvMixer):
        return (mixer.kernel - 1) * model.dim, 0
    taps = max(0, model.conv - 1) * 3 * model.dim
    if isinstance(mixer, AttentionMixer):
        seen = length if mixer.window is None else min(mixer.window, length)
        kept = 2 * seen * model.dim
        return (taps, kept) if mixer.window is None else (taps + kept, 0)
    scored = mixer.aggregate == "ssc" or (mixer.aggregate in ("grm", "soup") and mixer.gate == "context")
    head = model.head_dim
    pool, one = (head if scored else 0), matrices(model, mixer)
    # Titans carries momentum; between a chunk's first token and its last the weights at the first are needed too.
    gradient = mixer.memory in GRADIENT and (mixer.memory == "titans" or mixer.depth > 1) and mixer.chunk > 1
    copies = 1 + (mixer.memory == "titans") + gradient
    window = 2 * head if mixer.memory == "swla" else 0
    count = segments(mixer, length)
    kept = count - 1 if mixer.segmentation == "constant" else (count - 1).bit_count()
    return taps + model.heads * (one * copies + pool + window), model.heads * kept * (one + pool)

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
    slots = dim * model.heads * segments(mixer, length) if gate == "input" else 0
    return projections + dim + connector + slots + (dim * dim if mixer.out_gate else 0)


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
    one = model.heads * (model.head_dim**2 + (model.head_dim if scored else 0))
    return taps + one, (segments(mixer, length) - 1) * one

"""Parameters and state by arithmetic, so that a plan can print them without torch. Tests compare with real tensors."""

from collections.abc import Iterable

from mclab.config.model import AttentionMixer, MemoryMixer, Mixer, ModelConfig
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
    if not isinstance(mixer, MemoryMixer):
        return mixer.parameters(model, length)
    if mixer.own:  # its parameters are its own affair
        return None
    dim = model.dim
    connector = dim * dim if mixer.taught and mixer.connector == "own" else 0
    slots = dim * model.heads * _slots(mixer, length) if mixer.read_gate == "input" else 0
    around = 4 * dim * dim + 3 * model.conv * dim + dim + (dim * dim if mixer.out_gate else 0)
    return around + connector + slots + _memory(model, mixer) + _beside(mixer, model, length)


#: Norms between a memory and the attention of its hybrid.
NORMS = {"mal": 1, "mag": 2}


def _beside(mixer: MemoryMixer, model: ModelConfig, length: int) -> int:
    """Trained numbers of what a hybrid has beside the memory."""
    if mixer.hybrid == "none":
        return 0
    return AttentionMixer(window=mixer.window).parameters(model, length) + NORMS[mixer.hybrid] * model.dim


def _memory(model: ModelConfig, mixer: MemoryMixer) -> int:
    """Trained numbers of the memory itself: its rule's; W^0 and the norm's gain of deep ones."""
    rule = mixer.rule.parameters(model.dim, model.heads)
    if not mixer.deep:
        return rule
    return rule + model.heads * matrices(model, mixer) + (model.dim if mixer.memory_norm in ("rms", "soft") else 0)


def matrices(model: ModelConfig, mixer: MemoryMixer) -> int:
    """Numbers in one head's memory."""
    return mixer.rule.size(model.head_dim, mixer.depth if mixer.deep else 1)


def _slots(mixer: MemoryMixer, length: int) -> int:
    """Slots of the input gate: a segment each, or the online memory and a bucket size each."""
    count = mixer.segments(length)
    return count if mixer.segmentation != "log" else (count - 1).bit_length() + 1


def state_floats(run: RunConfig) -> tuple[int | None, int | None]:
    """Floats that a sequence of the task's length leaves behind for its next token: (fixed, cached).

    Fixed does not grow with the sequence: convolution taps; the online memory with all that its next write needs, in
    the middle of a chunk and of a segment; its running pool. Cached does: the kept memories that the last segment reads
    and their pools, or attention's keys and values. Buckets of `segmentation: log` that are still being written for
    later segments to read are not counted. `None` where a module of the user's own holds some.
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
    taps = max(0, model.conv - 1) * 3 * model.dim
    window = 0 if mixer.hybrid == "none" else sum(AttentionMixer(window=mixer.window).state(model, length))
    pool = model.head_dim if mixer.scored else 0
    online, kept = _online(model, mixer) + pool, _kept(mixer, run) * (matrices(model, mixer) + pool)
    return taps + window + model.heads * online, model.heads * kept


def _online(model: ModelConfig, mixer: MemoryMixer) -> int:
    """One head's memory and what else its next write needs: momentum; the weights at which gradients are taken, where
    they are those at the first token of a chunk and matter; the last keys and values."""
    copies = 1 + mixer.rule.momentum + (mixer.anchored and mixer.tokens_a_chunk > 1)
    return copies * matrices(model, mixer) + mixer.rule.lookback * 2 * model.head_dim


def _kept(mixer: MemoryMixer, run: RunConfig) -> int:
    """Kept memories that the last token reads, on test."""
    if run.eval.post_training is not None:
        return min(run.eval.post_training, -(-run.task.length // run.cached_after) - 1)
    past = mixer.segments(run.task.length) - 1
    return past if mixer.segmentation != "log" else past.bit_count()

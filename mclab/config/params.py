"""Parameters and state by arithmetic, so that a plan can print them without torch. Tests compare with real tensors."""

from mclab.config.model import AttentionMixer, MemoryMixer, ModelConfig
from mclab.config.run import RunConfig


def parameters(run: RunConfig) -> int:
    """Trained numbers in the model."""
    model, dim = run.model, run.model.dim
    mlp = dim + 3 * model.mlp * dim * dim if model.mlp else 0
    table = run.task.length * dim if model.position == "learned" else 0
    return run.task.vocab * dim + table + model.layers * (dim + _mixer(model, run.task.length) + mlp) + dim


def _mixer(model: ModelConfig, length: int) -> int:
    mixer, dim = model.mixer, model.dim
    projections = 4 * dim * dim + 3 * model.conv * dim
    if isinstance(mixer, AttentionMixer):
        return projections
    gate = "none" if mixer.aggregate in ("none", "residual") else mixer.gate
    connector = dim * dim if gate == "context" and mixer.connector == "own" else 0
    slots = dim * model.heads * segments(mixer, length) if gate == "input" else 0
    return projections + dim + connector + slots + (dim * dim if mixer.out_gate else 0)


def segments(mixer: MemoryMixer, length: int) -> int:
    """Segments of a sequence of `length` tokens; one without caching."""
    return 1 if mixer.aggregate == "none" else -(-length // mixer.segment)


def state_floats(run: RunConfig) -> tuple[int, int]:
    """Floats that a sequence of the task's length leaves behind for its next token: (fixed, cached).

    Fixed does not grow with the sequence: convolution taps, the online memory, its running pool. Cached does: kept
    memories and their pools, or attention's keys and values.
    """
    model, length = run.model, run.task.length
    taps = max(0, model.conv - 1) * 3 * model.dim
    fixed, cached = _mixer_state(model, length)
    return model.layers * (taps + fixed), model.layers * cached


def _mixer_state(model: ModelConfig, length: int) -> tuple[int, int]:
    mixer, head = model.mixer, model.head_dim
    if isinstance(mixer, AttentionMixer):
        if mixer.window is None:
            return 0, 2 * length * model.dim
        return 2 * min(mixer.window, length) * model.dim, 0
    scored = mixer.aggregate == "ssc" or (mixer.aggregate in ("grm", "soup") and mixer.gate == "context")
    one = model.heads * (head * head + (head if scored else 0))
    return one, (segments(mixer, length) - 1) * one

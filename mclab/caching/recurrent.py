"""Memory Caching by its definition: one token at a time, every kept memory a tensor of its own.

Everything fast in this package is tested against these loops, outputs and gradients, in fp64. Slow on purpose.
Shapes as in caching/layer.py; a state is a tuple of matrices [G, V, K].

See docs/equations.md#caching.
"""

import math

import torch
from torch import Tensor

from mclab.caching.gate import InputGate
from mclab.caching.init import INITS
from mclab.caching.layer import CachingLayer
from mclab.layers import linear, rotate
from mclab.memories.base import Memory, State, Tokens

#: Blocks from the first to the one before the last.
Span = tuple[int, int]


def recurrent(layer: CachingLayer, x: Tensor, q: Tensor, k: Tensor, v: Tensor, rotary: bool = False) -> Tensor:
    """What `layer(x, q, k, v, rotary)` means. All arguments and the result are [R, B, T, D]."""
    q_GTK, k_GTK, v_GTV = (_heads(z, layer.heads) for z in (q, k, v))
    u_GTK = _heads(layer.connector(x, q), layer.heads)
    logits_GTL = _input_logits(layer, x)
    memory, mixer, outputs = layer.memory, layer.mixer, []
    rotary = rotary or mixer.rule.rotary
    read_q, write_k = (rotate(q_GTK), rotate(k_GTK)) if rotary else (q_GTK, k_GTK)
    tokens = memory.tokens(x, write_k, v_GTV)
    T = x.shape[2]
    S = T if mixer.aggregate == "none" else mixer.segment
    initial = state = memory.initial(tokens)
    ends: list[State] = []
    kept: dict[Span, State] = {}
    for t in range(T):
        block, first = t // S, t - t % S
        if t == first:
            state = memory.begin(INITS[mixer.init].start(initial, state))
        state = memory.step(state, tokens.at(t))
        if t % S == S - 1:
            ends.append(state)
        spans = prefix(block, mixer.segmentation)
        for span in spans:
            if span not in kept:
                kept[span] = ends[span[1] - 1] if mixer.init == "checkpoint" else _alone(memory, tokens, span, S)
        pools = [_pool(k_GTK[:, a * S : b * S], mixer.pool) for a, b in spans]
        scores = _scores(u_GTK[:, t], [*pools, _pool(k_GTK[:, first : t + 1], mixer.pool)], mixer.pool, mixer.scale)
        logits = None if logits_GTL is None else logits_GTL[:, t, _slots(spans, block, mixer.segmentation, logits_GTL)]
        outputs.append(_aggregate(layer, [*(kept[span] for span in spans), state], read_q[:, t], scores, logits))
    y_GTV = torch.stack(outputs, dim=1)
    skipped = memory.skip(tokens)
    if skipped is not None:
        y_GTV = y_GTV + skipped
    return y_GTV.unflatten(0, (*x.shape[:2], layer.heads)).transpose(2, 3).flatten(-2)


def prefix(block: int, segments: str) -> list[Span]:
    """The kept memories that a block reads, each by its blocks [first, end): all single ones, or the binary digits."""
    if segments == "constant":
        return [(n, n + 1) for n in range(block)]
    spans, first = [], 0
    for digit in reversed(range(block.bit_length())):
        if block >> digit & 1:
            spans.append((first, first + (1 << digit)))
            first += 1 << digit
    return spans


def _alone(memory: Memory, tokens: Tokens, span: Span, segment: int) -> State:
    """A memory of its own, from W^0 over the tokens of these blocks."""
    state = memory.begin(memory.initial(tokens))
    for t in range(span[0] * segment, span[1] * segment):
        state = memory.step(state, tokens.at(t))
    return state


def _slots(spans: list[Span], block: int, segments: str, logits_GTL: Tensor) -> list[int]:
    """The input gate's slot of each memory, the online one last: the block's number, or the bucket's size."""
    if segments == "constant":
        slots = [*range(block), block]
    else:
        slots = [*(int(math.log2(end - first)) + 1 for first, end in spans), 0]
    return [min(slot, logits_GTL.shape[-1] - 1) for slot in slots]


def _heads(x_RBTD: Tensor, heads: int) -> Tensor:
    return x_RBTD.unflatten(-1, (heads, -1)).transpose(2, 3).flatten(0, 2)


def _pool(keys_GnK: Tensor, kind: str) -> Tensor:
    return keys_GnK.mean(1) if kind == "mean" else keys_GnK.sum(1)


def _scores(u_GK: Tensor, pools: list[Tensor], kind: str, scale: float | None) -> Tensor:
    factor = scale if scale is not None else math.sqrt(u_GK.shape[-1]) if kind == "mean" else 1.0
    return torch.stack([factor * (u_GK * pool).sum(-1) for pool in pools], dim=-1)


def _input_logits(layer: CachingLayer, x_RBTD: Tensor) -> Tensor | None:
    if not isinstance(layer.gate, InputGate):
        return None
    logits = linear(x_RBTD, layer.gate.weight).unflatten(-1, (layer.heads, -1))
    return logits.transpose(2, 3).flatten(0, 2)


def _aggregate(
    layer: CachingLayer, states: list[State], q_GK: Tensor, scores_Gn: Tensor, logits: Tensor | None
) -> Tensor:
    """One token's output; the online memory is the last of `states`."""
    mixer, memory = layer.mixer, layer.memory
    gate = mixer.read_gate
    if gate == "input":
        assert logits is not None
        scores_for_gate = logits
    else:
        scores_for_gate = scores_Gn
    gamma = torch.ones_like(scores_Gn) if gate == "none" else scores_for_gate.softmax(-1)
    if mixer.aggregate == "soup":
        return memory.read(memory.mix(states, list(gamma.unbind(-1))), q_GK)
    if mixer.aggregate == "ssc":
        gamma = _sparse(gamma, scores_for_gate, scores_Gn, mixer.k, gate != "none" and mixer.renormalise)
    return _weighted(memory, states, gamma, q_GK)


def _sparse(gamma: Tensor, logits: Tensor, scores: Tensor, k: int, renormalise: bool) -> Tensor:
    """Zero where a memory is neither the online one nor among the k best by context score."""
    past = scores.shape[-1] - 1
    keep = torch.zeros_like(gamma, dtype=torch.bool)
    keep[:, past] = True
    for g in range(keep.shape[0]):
        for i in sorted(range(past), key=lambda i: -scores[g, i].item())[:k]:
            keep[g, i] = True
    if not renormalise:
        return gamma * keep
    return torch.where(keep, logits, -torch.inf).softmax(-1)


def _weighted(memory: Memory, states: list[State], gamma_Gn: Tensor, q_GK: Tensor) -> Tensor:
    reads = torch.stack([memory.read(state, q_GK) for state in states], dim=1)
    return (gamma_Gn[..., None] * reads).sum(1)

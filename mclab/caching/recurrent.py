"""Memory Caching by its definition: one token at a time, with a separate tensor for every kept memory.

Everything fast in this package is tested against these loops, outputs and gradients, in fp64. The loops are slow on
purpose. Every value of an axis is compared by name: an unknown name raises an error and is never treated as another
value. A part of the user's own is its own definition: it is called for one token at a time. Shapes as in
caching/layer.py; a state is a tuple of matrices [G, V, K].

See docs/equations.md#caching.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.caching.gate import InputGate
from mclab.caching.init import INITS
from mclab.caching.layer import CachingLayer
from mclab.caching.own import OwnGate
from mclab.config.fields import is_path
from mclab.config.model import MemoryMixer
from mclab.memories.base import Memory, State, Tokens
from mclab.replicas.layers import linear, rotate

#: Blocks [first, end): from `first` up to, but not including, `end`.
Span = tuple[int, int]


def recurrent(layer: CachingLayer, x: Tensor, q: Tensor, k: Tensor, v: Tensor, rotary: bool = False) -> Tensor:
    """Return the output of `layer(x, q, k, v, rotary)` as it is defined.

    All tensors and the result are [R, B, T, D].
    """
    q_GTK, k_GTK, v_GTV = (_heads(z, layer.heads) for z in (q, k, v))
    u_GTK = _heads(layer.connector(x, q), layer.heads)
    pooled_GTK = _pooled(layer, x, k_GTK)
    logits_GTL = _input_logits(layer, x)
    memory, mixer, outputs = layer.memory, layer.mixer, []
    rotary = rotary or mixer.rule.rotary
    read_q, write_k = (rotate(q_GTK), rotate(k_GTK)) if rotary else (q_GTK, k_GTK)
    tokens = memory.tokens(x, write_k, v_GTV)
    T = x.shape[2]
    cuts = _cuts(mixer, T)
    initial = state = memory.initial(tokens)
    ends: list[State] = []
    kept: dict[Span, State] = {}
    for t in range(T):
        block = next(n for n, (_, end) in enumerate(cuts) if t < end)
        first, end = cuts[block]
        if t == first:
            state = memory.begin(INITS[mixer.init].start(initial, state))
        state = memory.step(state, tokens.at(t))
        if t == end - 1:
            ends.append(state)
        spans = prefix(block, mixer.segmentation)
        for span in spans:
            if span not in kept:
                kept[span] = ends[span[1] - 1] if mixer.init == "checkpoint" else _alone(memory, tokens, cuts, span)
        pools = [_pool(pooled_GTK[:, cuts[a][0] : cuts[b - 1][1]], mixer.pool) for a, b in spans]
        scores = _scores(layer, u_GTK[:, t], [*pools, _pool(pooled_GTK[:, first : t + 1], mixer.pool)])
        logits = None if logits_GTL is None else logits_GTL[:, t, _slots(spans, block, mixer.segmentation, logits_GTL)]
        age = torch.tensor([*(block - end + 1 for _, end in spans), 0], device=x.device)
        if isinstance(layer.gate, OwnGate):
            logits = _own_logits(layer.gate, x[:, :, t : t + 1], scores, age)
        gamma = _gamma(layer, scores, logits, _Place(t, spans))
        outputs.append(_read(layer, [*(kept[span] for span in spans), state], read_q[:, t], gamma, age))
    y_GTV = torch.stack(outputs, dim=1)
    skipped = memory.skip(tokens)
    if skipped is not None:
        y_GTV = y_GTV + skipped
    return y_GTV.unflatten(0, (*x.shape[:2], layer.heads)).transpose(2, 3).flatten(-2)


def _cuts(mixer: MemoryMixer, length: int) -> list[Span]:
    """Return the tokens [first, end) of each segment."""
    if mixer.aggregate == "none":
        return [(0, length)]
    if mixer.segmentation not in ("constant", "log", "listed"):
        raise _unknown("segmentation", mixer.segmentation)
    each = list(mixer.segment_lengths) if mixer.segmentation == "listed" else [mixer.segment]
    found = [(0, min(each[0], length))]
    while found[-1][1] < length:
        size = each[min(len(found), len(each) - 1)]
        found.append((found[-1][1], min(found[-1][1] + size, length)))
    return found


def _unknown(axis: str, word: str) -> ValueError:
    return ValueError(f"the definition does not know {axis} {word!r}; define it in mclab/caching/recurrent.py")


def prefix(block: int, segments: str) -> list[Span]:
    """Return the kept memories that the tokens of segment number `block` read.

    A memory is given as the range [first, end) of the segments that it covers. With constant or listed segments each
    earlier segment is one memory. With log segments there is one memory for each 1 among the binary digits of `block`,
    and the memory that covers most segments comes first.
    """
    if segments in ("constant", "listed"):
        return [(n, n + 1) for n in range(block)]
    if segments != "log":
        raise _unknown("segmentation", segments)
    spans, first = [], 0
    for digit in reversed(range(block.bit_length())):
        if block >> digit & 1:
            spans.append((first, first + (1 << digit)))
            first += 1 << digit
    return spans


def _alone(memory: Memory, tokens: Tokens, cuts: list[Span], span: Span) -> State:
    """Return the state of a memory that starts from W^0 and is written over the tokens of the blocks in `span`."""
    state = memory.begin(memory.initial(tokens))
    for t in range(cuts[span[0]][0], cuts[span[1] - 1][1]):
        state = memory.step(state, tokens.at(t))
    return state


def _slots(spans: list[Span], block: int, segments: str, logits_GTL: Tensor) -> list[int]:
    """Return the input gate's slots of the memories that `block` reads; the last slot is that of the online memory.

    With constant or listed segments the slot is the number of the memory's block. With log segments it is l + 1 for a
    bucket of 2^l blocks and 0 for the online memory. Slots beyond those of training become the last trained slot.
    """
    if segments in ("constant", "listed"):
        slots = [*range(block), block]
    elif segments == "log":
        slots = [*(int(math.log2(end - first)) + 1 for first, end in spans), 0]
    else:
        raise _unknown("segmentation", segments)
    return [min(slot, logits_GTL.shape[-1] - 1) for slot in slots]


def _heads(x_RBTD: Tensor, heads: int) -> Tensor:
    return x_RBTD.unflatten(-1, (heads, -1)).transpose(2, 3).flatten(0, 2)


def _pooled(layer: CachingLayer, x_RBTD: Tensor, k_GTK: Tensor) -> Tensor:
    of = layer.mixer.pool_of
    if of == "inputs":
        return _heads(x_RBTD, layer.heads)
    if of == "keys":
        return k_GTK
    raise _unknown("pool_of", of)


def _pool(tokens_GnK: Tensor, kind: str) -> Tensor:
    if kind == "mean":
        return tokens_GnK.mean(1)
    if kind == "sum":
        return tokens_GnK.sum(1)
    raise _unknown("pool", kind)


def _scores(layer: CachingLayer, u_GK: Tensor, pools: list[Tensor]) -> Tensor:
    mixer = layer.mixer
    short = mixer.pool == "mean" and mixer.pool_of == "keys"
    factor = mixer.scale if mixer.scale is not None else math.sqrt(u_GK.shape[-1]) if short else 1.0
    return torch.stack([factor * (u_GK * pool).sum(-1) for pool in pools], dim=-1)


def _input_logits(layer: CachingLayer, x_RBTD: Tensor) -> Tensor | None:
    if not isinstance(layer.gate, InputGate):
        return None
    logits = linear(x_RBTD, layer.gate.weight).unflatten(-1, (layer.heads, -1))
    return logits.transpose(2, 3).flatten(0, 2)


class _Place(NamedTuple):
    """A token, and the kept memories that it sees."""

    t: int
    spans: list[Span]


def _gamma(layer: CachingLayer, scores_Gn: Tensor, logits_Gn: Tensor | None, place: _Place) -> Tensor:
    """Return the weights [G, n] of one token; the last one is that of the online memory."""
    mixer = layer.mixer
    gate = mixer.read_gate
    logits = _logits(gate, scores_Gn, logits_Gn)
    gamma = torch.ones_like(scores_Gn) if gate == "none" else _activated(logits, mixer.gate_activation)
    if mixer.aggregate != "ssc":
        return gamma
    keep = _chosen(scores_Gn, mixer.k)
    counted, early = _counted(layer, keep, place)
    sharp = gamma if early else gamma * keep
    if gate != "none" and mixer.gate_activation == "softmax" and mixer.renormalise and not early:
        sharp = torch.where(keep, logits, -torch.inf).softmax(-1)
    if counted is None:
        return sharp
    soft = counted * _soft(gate, scores_Gn, logits.detach(), mixer.gate_activation)
    return (sharp.detach() if gate == "context" else sharp) + soft - soft.detach()


def _own_logits(gate: OwnGate, x_RB1D: Tensor, scores_Gn: Tensor, age_n: Tensor) -> Tensor:
    """Return the logits [G, n] of a user's gate, which has no other definition; it is called for one token alone."""
    scores_G1n = scores_Gn.unsqueeze(1)
    return gate.logits(x_RB1D, scores_G1n, age_n[None], torch.ones_like(age_n[None], dtype=torch.bool)).squeeze(1)


def _logits(gate: str, scores_Gn: Tensor, input_Gn: Tensor | None) -> Tensor:
    """Return the gate's logit for each memory, [G, n]; with `gate: none` the result is not used."""
    if gate in ("context", "none"):
        return scores_Gn
    if (gate == "input" or is_path(gate)) and input_Gn is not None:
        return input_Gn
    raise _unknown("gate", gate)


def _chosen(scores_Gn: Tensor, k: int) -> Tensor:
    """Return [G, n]: True for the online memory and for the k kept memories of highest context score."""
    past = scores_Gn.shape[-1] - 1
    keep = torch.zeros_like(scores_Gn, dtype=torch.bool)
    keep[:, past] = True
    for g in range(keep.shape[0]):
        for i in sorted(range(past), key=lambda i: -scores_Gn[g, i].item())[:k]:
            keep[g, i] = True
    return keep


def _counted(layer: CachingLayer, keep_Gn: Tensor, place: _Place) -> tuple[Tensor | None, bool]:
    """Return the factor [G, n] on the gradient of each soft weight, and whether this step reads all memories.

    The factor is `None` if the soft weights give no gradient.
    """
    route, step = layer.mixer.route, layer.route_step
    if route not in ("hard", "annealed", "explore", "straight_through"):
        raise _unknown("route", route)
    if route == "hard":
        return None, False
    early = route == "annealed" and step is not None and step.early
    if early or route == "straight_through" or step is None or step.draws_GT is None:
        return torch.ones_like(keep_Gn, dtype=torch.float64), early
    counted = keep_Gn.double()
    for g in range(len(keep_Gn)):
        # In the order of the layer's columns: by size, then by time.
        by_size = sorted(range(len(place.spans)), key=lambda i: (place.spans[i][1] - place.spans[i][0], i))
        left = [i for i in by_size if not keep_Gn[g, i]]
        if left:
            counted[g, left[int(step.draws_GT[g, place.t]) * len(left) // 2**31]] = len(left)
    return counted, False


def _activated(logits_Gn: Tensor, kind: str) -> Tensor:
    """Return the weights [G, n] of these logits if all memories are read."""
    if kind == "softmax":
        return logits_Gn.softmax(-1)
    if kind == "sigmoid":
        return 1 / (1 + torch.exp(-logits_Gn))
    if kind == "identity":
        return logits_Gn
    raise _unknown("gate_activation", kind)


def _soft(gate: str, scores_Gn: Tensor, logits_Gn: Tensor, kind: str) -> Tensor:
    """Return [G, n]: the weights that would result if no memory were left out, as far as the scores decide them."""
    if gate == "none":
        return torch.cat((scores_Gn[:, :-1].softmax(-1), torch.zeros_like(scores_Gn[:, -1:])), -1)
    return _activated(scores_Gn if gate == "context" else logits_Gn + scores_Gn, kind)


def _read(layer: CachingLayer, states: list[State], q_GK: Tensor, gamma_Gn: Tensor, age_n: Tensor) -> Tensor:
    """Return the output [G, V] of one token; the last of `states` is the online memory."""
    aggregate = layer.mixer.aggregate
    if layer.aggregate is not None:  # a user's aggregation is its own definition
        reads_G1nV = torch.stack([layer.memory.read(state, q_GK) for state in states], dim=1).unsqueeze(1)
        seen = torch.ones_like(age_n[None], dtype=torch.bool)
        return layer.aggregate.output(reads_G1nV, gamma_Gn.unsqueeze(1), q_GK.unsqueeze(1), age_n[None], seen).squeeze(
            1
        )
    if aggregate == "soup":
        return layer.memory.read(layer.memory.mix(states, list(gamma_Gn.unbind(-1))), q_GK)
    if aggregate in ("none", "residual", "grm", "ssc"):
        return _weighted(layer.memory, states, gamma_Gn, q_GK)
    raise _unknown("aggregate", aggregate)


def _weighted(memory: Memory, states: list[State], gamma_Gn: Tensor, q_GK: Tensor) -> Tensor:
    reads = torch.stack([memory.read(state, q_GK) for state in states], dim=1)
    return (gamma_Gn[..., None] * reads).sum(1)

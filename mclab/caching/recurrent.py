"""Memory Caching by its definition: one token at a time, every kept memory a tensor of its own.

Everything fast in this package is tested against these loops, outputs and gradients, in fp64. Slow on purpose.
Shapes as in caching/layer.py; a state is a tuple of matrices [G, V, K].
"""

import math

import torch
from torch import Tensor

from mclab.caching.gate import InputGate
from mclab.caching.init import INITS
from mclab.caching.layer import CachingLayer
from mclab.layers import linear, rotate
from mclab.memories.base import Memory, State


def recurrent(layer: CachingLayer, x: Tensor, q: Tensor, k: Tensor, v: Tensor, rotary: bool = False) -> Tensor:
    """What `layer(x, q, k, v, rotary)` means. All arguments and the result are [R, B, T, D]."""
    q_GTK, k_GTK, v_GTV = (_heads(z, layer.heads) for z in (q, k, v))
    u_GTK = _heads(layer.connector(x, q), layer.heads)
    logits_GTN = _input_logits(layer, x)
    memory, mixer, outputs = layer.memory, layer.mixer, []
    rotary = rotary or memory.rotary
    read_q, write_k = (rotate(q_GTK), rotate(k_GTK)) if rotary else (q_GTK, k_GTK)
    tokens = memory.tokens(x, write_k, v_GTV)
    initial = state = memory.initial(tokens)
    kept: list[State] = []
    pools: list[Tensor] = []
    keys: list[Tensor] = []
    for t in range(x.shape[2]):
        if t and t % mixer.segment == 0 and mixer.aggregate != "none":
            kept.append(state)
            pools.append(_pool(keys, mixer.pool))
            keys = []
            state = memory.begin(INITS[mixer.init].start(initial, state))
        keys.append(k_GTK[:, t])
        state = memory.step(state, tokens.at(t))
        scores = _scores(u_GTK[:, t], [*pools, _pool(keys, mixer.pool)], mixer.pool, mixer.scale)
        logits = None if logits_GTN is None else logits_GTN[:, t]
        outputs.append(_aggregate(layer, [*kept, state], read_q[:, t], scores, logits))
    y_GTV = torch.stack(outputs, dim=1)
    return y_GTV.unflatten(0, (*x.shape[:2], layer.heads)).transpose(2, 3).flatten(-2)


def _heads(x_RBTD: Tensor, heads: int) -> Tensor:
    return x_RBTD.unflatten(-1, (heads, -1)).transpose(2, 3).flatten(0, 2)


def _pool(keys: list[Tensor], kind: str) -> Tensor:
    total = torch.stack(keys).sum(0)
    return total / len(keys) if kind == "mean" else total


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
    if mixer.aggregate in ("none", "residual"):
        return torch.stack([memory.read(state, q_GK) for state in states]).sum(0)
    if mixer.gate == "input":
        assert logits is not None
        last = logits.shape[-1] - 1
        scores_for_gate = torch.stack([logits[:, min(i, last)] for i in range(len(states))], dim=-1)
    else:
        scores_for_gate = scores_Gn
    gamma = torch.ones_like(scores_Gn) if mixer.gate == "none" else scores_for_gate.softmax(-1)
    if mixer.aggregate == "soup":
        return memory.read(memory.mix(states, list(gamma.unbind(-1))), q_GK)
    if mixer.aggregate == "ssc":
        gamma = _sparse(gamma, scores_for_gate, scores_Gn, mixer.k, mixer.gate != "none" and mixer.renormalise)
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

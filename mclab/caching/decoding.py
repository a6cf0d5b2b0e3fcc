"""Run a caching layer token by token, from the state after the earlier tokens (docs/equations.md#caching).

This uses the memory's `step` and `read`, which define the memory, and the layer's gate, aggregation and routes. A token
costs one write and the reads that its aggregation needs, however long the sequence is. Shapes as in caching/layer.py;
the n columns are the kept memories, oldest first, and then the online memory.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from mclab.caching.activation import ACTIVATIONS
from mclab.caching.aggregate import AGGREGATES
from mclab.caching.decoding_read import TokenRead
from mclab.caching.decoding_state import DecodingState, KeptMemories, Writer
from mclab.caching.gate import default_scale
from mclab.caching.gate_output import GateOutput
from mclab.caching.init import INITS
from mclab.caching.layer import CachingLayer
from mclab.caching.pool import POOLS
from mclab.config.model import MemoryMixer
from mclab.memories.base import State, Tokens
from mclab.replicas.layers import autocast, rotate, widened


class Inputs(NamedTuple):
    """The inputs of a layer for some tokens: each is [1, B, T, D]."""

    x: Tensor
    q: Tensor
    k: Tensor
    v: Tensor


def advance(layer: CachingLayer, inputs: Inputs, rotary: bool, past: DecodingState) -> tuple[Tensor, DecodingState]:
    """Return the outputs [1, B, T, D] of `layer` for tokens that follow `past`, and the decoding state after them.

    The layer reads the first tokens of a sequence at once, as a whole sequence; it reads later tokens one by one.
    """
    whole = past.tokens == 0 and inputs.x.shape[2] > 1
    y = layer(*inputs, rotary) if whole else None
    with autocast(inputs.x.device, False):
        piece = _Piece(layer, Inputs(*widened(*inputs)), rotary, past.tokens)
        done = piece.side_by_side(past) if whole else past
        outputs, done = piece.run(done, read=not whole)
    return outputs if y is None else y, done


class _Piece:
    """Consecutive tokens, with everything that can be computed for all of them at once (queries, rates, ...)."""

    def __init__(self, layer: CachingLayer, inputs: Inputs, rotary: bool, start: int) -> None:
        self.layer, self.mixer, self.memory, self.x = layer, layer.mixer, layer.memory, inputs.x
        q, k, v = (layer._fold(z) for z in inputs[1:])
        self.pooled = (layer._fold(inputs.x) if self.mixer.pool_of == "inputs" else k) if self.mixer.scored else None
        self.u = layer._fold(layer.connector(inputs.x, inputs.q)) if self.mixer.scored else None
        turned = rotary or self.mixer.rule.rotary
        self.q, k = (rotate(q, start), rotate(k, start)) if turned else (q, k)
        self.tokens = self.memory.tokens(inputs.x, k, v)
        self.initial = self.memory.initial(self.tokens)
        self.start = start

    def run(self, past: DecodingState, read: bool) -> tuple[Tensor, DecodingState]:
        """Write the tokens that are not in `past` yet; return the outputs [1, B, T, D] and the new state.

        With `read=False` no output is computed, and the input x is returned instead.
        """
        now = self._with_states(past, lambda state: self.memory.resumed(state, self.initial))
        outputs = []
        for t in range(past.tokens - self.start, self.x.shape[2]):
            now = self._written(self._opened(now), t)
            if read:
                outputs.append(self._read(now, t))
        left = self._with_states(now, self.memory.carried)
        if not read:
            return self.x, left
        y_GTV, skipped = torch.cat(outputs, 1), self.memory.skip(self.tokens)
        return self.layer._unfold(y_GTV if skipped is None else y_GTV + skipped, 1), left

    def side_by_side(self, past: DecodingState) -> DecodingState:
        """Write all segments except the last at once, if segments are equally long and restart; else return `past`
        unchanged.

        Segments that restart do not depend on each other.
        """
        mixer, S = self.mixer, self.mixer.segment
        count = (self.x.shape[2] - 1) // S
        if mixer.aggregate == "none" or (mixer.init, mixer.segmentation) != ("restart", "constant") or not count:
            return past
        k, v, *rates = (_segments(z, count, S) for z in (self.tokens.k, self.tokens.v, *self.tokens.rates))
        tokens = Tokens(k, v, tuple(rates))
        state = self.memory.begin(self.memory.initial(tokens))
        for t in range(S):
            state = self.memory.step(state, tokens.at(t))
        rows = [w.unflatten(0, (count, -1)) for w in state.weights]
        slots = torch.arange(count, device=self.x.device)
        pools = [] if self.pooled is None else [self._pool(_segments(self.pooled, count, S).sum(1), S)]
        kept = KeptMemories.of(*rows, slots, *(pool.unflatten(0, (count, -1)) for pool in pools))
        return DecodingState(count * S, count, (self._writer(count, self.memory.carried(self.initial)),), kept)

    def _with_states(self, now: DecodingState, change: Callable[[State], State]) -> DecodingState:
        each = (w if w.state is None else replace(w, state=change(w.state)) for w in now.writers)
        return replace(now, writers=tuple(each))

    def _writer(self, block: int, state: State) -> Writer:
        total = None if self.pooled is None else torch.zeros_like(self.pooled[:, 0])
        return Writer(block, 0, self.memory.begin(state), total)

    def _opened(self, now: DecodingState) -> DecodingState:
        """Return `now` after a full segment, if any, was kept and the next segment was opened."""
        if not now.writers:
            return replace(now, writers=(self._writer(0, self.initial),))
        online = now.writers[-1]
        if now.tokens < _end(self.mixer, now.block):
            return now
        assert online.state is not None
        block, log = now.block + 1, self.mixer.segmentation == "log"
        first = block - (block & -block) if log else now.block
        kept = self._kept(now, next(each for each in now.writers if each.first == first), block)
        # A bucket of 2^l segments starts at i 2^l with an even i (caching/segment.py). So a bucket that starts at f
        # has at most half as many segments as the value of the lowest binary digit 1 of f.
        growing = tuple(
            each
            for each in now.writers
            if log and (each.first == 0 or block - each.first < (each.first & -each.first) // 2)
        )
        if not INITS[self.mixer.init].restarts:
            growing = tuple(replace(each, state=None) for each in growing)
        begun = self._writer(block, INITS[self.mixer.init].start(self.initial, online.state))
        return DecodingState(now.tokens, block, (*growing, begun), kept)

    def _kept(self, now: DecodingState, writer: Writer, block: int) -> KeptMemories:
        """Return the kept memories together with the memory of `writer`, which ends before segment `block`.

        With log segments this memory replaces the smaller buckets that it contains.
        """
        state = writer.state or now.writers[-1].state
        assert state is not None
        size = block - writer.first
        log = self.mixer.segmentation == "log"
        slot = torch.tensor(size.bit_length() if log else writer.first, device=self.x.device)
        pools = [] if writer.total is None else [self._pool(writer.total, writer.tokens)]
        earlier = now.kept.without_last(size.bit_length() - 1) if log else now.kept
        return earlier.added(*state.weights, slot, *pools)

    def _pool(self, total: Tensor, tokens: int) -> Tensor:
        factor: Tensor = POOLS[self.mixer.pool](total.new_tensor(float(tokens)))
        return total * factor

    def _written(self, now: DecodingState, t: int) -> DecodingState:
        """Return `now` after token t of the piece is written into every open memory."""
        token, writers = self.tokens.at(t), []
        for each in now.writers:
            state = None if each.state is None else self.memory.step(each.state, token)
            total = None if each.total is None or self.pooled is None else each.total + self.pooled[:, t]
            writers.append(Writer(each.first, each.tokens + 1, state, total))
        return replace(now, tokens=now.tokens + 1, writers=tuple(writers))

    def _read(self, now: DecodingState, t: int) -> Tensor:
        """Return token t's output, [G, 1, V]."""
        online, rows, depth = now.writers[-1], now.kept.rows, len(self.initial.weights)
        assert online.state is not None
        seen = TokenRead(self.memory, rows[:depth], online.state)
        log = self.mixer.segmentation == "log"
        own_slot = torch.tensor([0 if log else now.block], device=self.x.device)
        slots = torch.cat((rows[depth], own_slot)) if rows else own_slot
        scores = self._scores(rows[depth + 1] if rows and online.total is not None else None, online, t)
        mixer, past = self.mixer, torch.ones(1, now.kept.count + 1, dtype=torch.bool, device=self.x.device)
        visible, past[0, -1] = past.clone(), False
        gated = GateOutput(
            visible_TN=visible,
            own_TN=~past,
            past_TN=past,
            logits_GTN=self.layer.gate(self.x[:, :, t : t + 1], scores, _Slots(slots)),
            scores_GTN=scores,
            activation=ACTIVATIONS[mixer.gate_activation],
            k=mixer.k,
            renormalise=mixer.renormalise,
            route=mixer.route,
            step=None,
        )
        return AGGREGATES[mixer.aggregate](seen, self.q[:, t : t + 1], gated)

    def _scores(self, pools_NGK: Tensor | None, online: Writer, t: int) -> Tensor | None:
        """Return the context scores of token t, [G, 1, n]; `None` if the layer needs no scores."""
        if self.u is None or online.total is None:
            return None
        own_1GK = self._pool(online.total, online.tokens).unsqueeze(0)
        pools = own_1GK if pools_NGK is None else torch.cat((pools_NGK, own_1GK))
        scale = self.mixer.scale
        if scale is None:
            scale = default_scale(self.mixer.pool, self.mixer.pool_of, self.u.shape[-1])
        return (scale * torch.einsum("ngk,gk->gn", pools, self.u[:, t])).unsqueeze(1)


class _Slots(NamedTuple):
    """The input gate's slot of each column, as an object with the interface of `caching.gate.Slots`."""

    columns: Tensor

    def slots(self, device: torch.device) -> Tensor:
        return self.columns


def _segments(x: Tensor, count: int, tokens: int) -> Tensor:
    """Return the first `count` segments of x [G, T, ...] as [N*G, S, ...]; segments vary slowest, heads fastest."""
    each: Tensor = x[:, : count * tokens].unflatten(1, (count, tokens))
    return each.transpose(0, 1).flatten(0, 1)


def _end(mixer: MemoryMixer, block: int) -> float:
    """Return the position of the first token after segment `block`."""
    if mixer.aggregate == "none":
        return float("inf")
    if mixer.segmentation != "listed":
        return (block + 1) * mixer.segment
    lengths, beyond = mixer.segment_lengths, block + 1 - len(mixer.segment_lengths)
    return sum(lengths[: block + 1]) + max(0, beyond) * lengths[-1]

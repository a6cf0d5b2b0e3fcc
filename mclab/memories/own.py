"""Run an update rule of the user's own, token by token or in chunks, and read it in every way that a cache needs.

The rule is one class with `step(state, token)`; docs/extending.md says what else it may have. The rule gets one
replica: B sequences with H heads. Its state is a tensor [B, H, ...] or several. Other shapes as in memories/base.py; L
tokens.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mclab.config.model import MemoryMixer
from mclab.config.own import Part
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.sparse_read import spread
from mclab.replicas.stacked import stacked

#: The number of tokens that a rule's `write` gets at once, unless the rule has an attribute `chunk`.
CHUNK = 16
#: The largest number of tokens that `write` may get at once, whatever the rule says; `chunks_up_to` sets it.
_longest = sys.maxsize
#: A rule's state as a tuple of tensors, [B, H, ...] each; the states after each of L tokens are [B, L, H, ...].
States = tuple[Tensor, ...]


class Token(NamedTuple):
    """The inputs of a rule for one token. `write` gets those of L tokens, with an axis L after B."""

    k: Tensor
    """[B, H, K]: its key in each head."""
    v: Tensor
    """[B, H, V]: its value."""
    x: Tensor
    """[B, D]: the layer's input, from which a rule may compute rates."""


class OwnMemory(Memory):
    """A user's rule as a memory. `Tokens.rates` has one tensor, the layer's input [R*B, T, D]."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        path, keywords = mixer.own["memory"]
        self.replicas, self.heads = replicas, heads
        part = Part("memory", "model.mixer.memory", "model.mixer.memory_args", path, keywords)
        self.part = stacked(replicas, part, width, heads)

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        return Tokens(k_GTK, v_GTV, (x_RBTD.flatten(0, 1),))

    def initial(self, tokens: Tokens) -> State:
        token = tokens.at(0)
        return self._folded(self.part.each(lambda rule, r: first(rule, self._token(token, r))))

    def step(self, state: State, token: Tokens) -> State:
        return self._folded(
            self.part.each(lambda rule, r: _all(rule.step(_one(self._of(state.weights, r)), self._token(token, r))))
        )

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        reads = self.part.each(lambda rule, r: read(rule, self._of(state.weights, r), self._of((q_GK,), r)[0]))
        return torch.stack(reads).flatten(0, 2)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        each = self.part.each(lambda rule, r: _written(rule, self._row(tokens, r), segments, init))
        return OwnWritten(self, segments, each)

    def _of(self, folded: Sequence[Tensor], replica: int) -> tuple[Tensor, ...]:
        """Return the tensors of one replica, [B, H, ...], from those of all, [G, ...]."""
        return tuple(z.unflatten(0, (self.replicas, -1, self.heads))[replica] for z in folded)

    def _token(self, token: Tokens, replica: int) -> Token:
        k, v = self._of((token.k, token.v), replica)
        return Token(k, v, token.rates[0].unflatten(0, (self.replicas, -1))[replica])

    def _row(self, tokens: Tokens, replica: int) -> Token:
        """Return all tokens of one replica: k, v [B, T, H, ...], x [B, T, D]."""
        token = self._token(tokens, replica)
        return Token(token.k.transpose(1, 2), token.v.transpose(1, 2), token.x)

    def _folded(self, each: list[States]) -> State:
        return State(tuple(torch.stack(parts).flatten(0, 2) for parts in zip(*each, strict=True)))


def first(rule: Any, token: Token) -> States:
    """Return the state before `token`, the first token: from the rule's `initial`, else a matrix of zeros per head."""
    if hasattr(rule, "initial"):
        return _all(rule.initial(token))
    return (token.k.new_zeros(*token.v.shape, token.k.shape[-1]),)


def read(rule: Any, state: States, q_BHK: Tensor) -> Tensor:
    """Return the read of a query, [B, H, V]: from the rule's `read`, else M q."""
    if hasattr(rule, "read"):
        found: Tensor = rule.read(_one(state), q_BHK)
        return found
    return torch.einsum("bhvk,bhk->bhv", state[0], q_BHK)


@contextmanager
def chunks_up_to(tokens: int) -> Iterator[None]:
    """Within the block, a rule's `write` gets at most `tokens` tokens at once.

    So even a short sequence is written in several calls, each from the state that the last call returned.
    """
    global _longest
    before, _longest = _longest, tokens
    try:
        yield
    finally:
        _longest = before


def over(rule: Any, state: States, tokens: Token) -> States:
    """Return the states after each of L tokens, [B, L, H, ...].

    The rule's `write` computes them, chunk by chunk, if it has one, else its `step`, token by token.
    """
    length, found = tokens.k.shape[1], list[States]()
    if not hasattr(rule, "write"):
        for t in range(length):
            state = _all(rule.step(_one(state), Token(tokens.k[:, t], tokens.v[:, t], tokens.x[:, t])))
            found.append(state)
        return tuple(torch.stack(each, 1) for each in zip(*found, strict=True))
    size = min(getattr(rule, "chunk", CHUNK), _longest)
    for at in range(0, length, size):
        states = _all(rule.write(_one(state), Token(*(z[:, at : at + size] for z in tokens))))
        state = tuple(each[:, -1] for each in states)
        found.append(states)
    return tuple(torch.cat(each, 1) for each in zip(*found, strict=True))


def _all(state: Tensor | Sequence[Tensor]) -> States:
    return (state,) if isinstance(state, Tensor) else tuple(state)


def _one(state: States) -> Tensor | States:
    """Return the state in the form that a rule uses: a single tensor, or a tuple of several."""
    return state[0] if len(state) == 1 else state


class _Written(NamedTuple):
    """The states of one replica:

    `online` after every token, [B, T, H, ...], and `kept` [B, H, ...] in the order of `spans`.
    """

    online: States
    kept: list[States]


def _written(rule: Any, tokens: Token, segments: Segments, init: Init) -> _Written:
    size = segments.segment
    if not init.restarts:
        online = over(rule, first(rule, _at(tokens, 0)), tokens)
        return _Written(online, [tuple(each[:, end * size - 1] for each in online) for _, end in segments.spans])
    alone = _alone(rule, tokens, dict.fromkeys([*segments.runs, *segments.spans]), size)
    online = tuple(torch.cat(each, 1) for each in zip(*(alone[run] for run in segments.runs), strict=True))
    return _Written(online, [tuple(each[:, -1] for each in alone[span]) for span in segments.spans])


def _alone(rule: Any, tokens: Token, spans: dict[tuple[int, int], None], size: int) -> dict[tuple[int, int], States]:
    """Return for each span of blocks the states after each of its tokens, starting from the rule's first state.

    Spans of the same length are written in one batch.
    """
    found = dict[tuple[int, int], States]()
    for blocks in dict.fromkeys(end - begin for begin, end in spans):
        alike = [span for span in spans if span[1] - span[0] == blocks]
        cuts = [Token(*(z[:, begin * size : end * size] for z in tokens)) for begin, end in alike]
        rows = Token(*(torch.cat(each) for each in zip(*cuts, strict=True)))
        states = over(rule, first(rule, _at(rows, 0)), rows)
        pieces = zip(*(each.chunk(len(alike)) for each in states), strict=True)
        found |= dict(zip(alike, pieces, strict=True))
    return found


def _at(tokens: Token, t: int) -> Token:
    return Token(*(z[:, t] for z in tokens))


@dataclass(frozen=True)
class OwnWritten:
    """A sequence that a user's rule wrote: the states of each replica."""

    memory: OwnMemory
    segments: Segments
    replicas: list[_Written]

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        return self._each(_read, q_GTK, weights_GTN)

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        """Read all memories; those that were not chosen have weight zero."""
        return self.read(q_GTK, spread(weights_GTJ, columns_GTJ, self.segments.columns))

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        return self._each(_read_mixed, q_GTK, weights_GTN)

    def _each(self, how: Any, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        if weights_GTN is None:
            seen_TN = self.segments.visible(q_GTK.device).to(q_GTK.dtype)
            weights_GTN = seen_TN.expand(len(q_GTK), -1, -1)
        column_GT1 = self.segments.own_column(q_GTK.device)[None, :, None].expand(len(q_GTK), -1, 1)
        own_GT1, size = weights_GTN.gather(-1, column_GT1), self.segments.segment
        readers = [(first * size, end * size) for first, end in self.segments.readers]

        def act(rule: Any, replica: int) -> Tensor:
            q, weights, own = (z.transpose(1, 2) for z in self.memory._of((q_GTK, weights_GTN, own_GT1), replica))
            y_BTHV: Tensor = how(rule, self.replicas[replica], readers, q, weights, own)
            return y_BTHV.transpose(1, 2)

        return torch.stack(self.memory.part.each(act)).flatten(0, 2)


def _read(
    rule: Any, written: _Written, readers: list[tuple[int, int]], q_BTHK: Tensor, weights_BTHN: Tensor, own_BTH1: Tensor
) -> Tensor:
    """Return the sum of weight times M(q)."""
    y_BTHV = own_BTH1 * _reads(rule, written.online, q_BTHK)
    for column, (state, (begin, end)) in enumerate(zip(written.kept, readers, strict=True)):
        q = q_BTHK[:, begin:end]
        wide = tuple(each.unsqueeze(1).expand(-1, end - begin, *each.shape[1:]) for each in state)
        past = weights_BTHN[:, begin:end, :, column, None] * _reads(rule, wide, q)
        y_BTHV = torch.cat((y_BTHV[:, :begin], y_BTHV[:, begin:end] + past, y_BTHV[:, end:]), 1)
    return y_BTHV


def _read_mixed(
    rule: Any, written: _Written, readers: list[tuple[int, int]], q_BTHK: Tensor, weights_BTHN: Tensor, own_BTH1: Tensor
) -> Tensor:
    """For each token, read the weighted sum of the states that it sees."""
    mixed = list[Tensor]()
    for number, online in enumerate(written.online):
        total = _times(own_BTH1[..., 0], online)
        for column, (state, (begin, end)) in enumerate(zip(written.kept, readers, strict=True)):
            past = _times(weights_BTHN[:, begin:end, :, column], state[number].unsqueeze(1))
            total = torch.cat((total[:, :begin], total[:, begin:end] + past, total[:, end:]), 1)
        mixed.append(total)
    return _reads(rule, tuple(mixed), q_BTHK)


def _times(weights_BTH: Tensor, state: Tensor) -> Tensor:
    return weights_BTH.reshape(*weights_BTH.shape, *(1,) * (state.dim() - 3)) * state


def _reads(rule: Any, states: States, q_BTHK: Tensor) -> Tensor:
    """Return the read of every token from its state in `states`, [B, L, H, V]."""
    found: Tensor = read(rule, tuple(each.flatten(0, 1) for each in states), q_BTHK.flatten(0, 1))
    y_BLHV: Tensor = found.unflatten(0, q_BTHK.shape[:2])
    return y_BLHV

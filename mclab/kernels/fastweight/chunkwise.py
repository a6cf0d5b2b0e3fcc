"""A sequence written into a stack of fast-weight matrices in chunks; no token's own weight matrix is ever formed.

Shapes: X folded batch (sequences, heads and, where segments restart, segments), M chunks, C tokens in a chunk, J writes
that a chunk's tokens see (C, or C + 1 with one carried in), I and O a layer's widths.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mclab.kernels.fastweight.rates import Coefficients

#: Each layer's inputs a [X, J, I] and updates u [X, J, O] of a chunk: its matrix gains a multiple of u_j a_j^T.
Updates = tuple[Sequence[Tensor], Sequence[Tensor]]
#: The updates of chunk m, given the weights carried into it, one [X, O, I] a layer.
Source = Callable[[int, Sequence[Tensor]], Updates]


@dataclass(frozen=True)
class State:
    """Per layer what was added to the start, D = W - W^0, and the momentum S, each [X, O, I]; None is all zero."""

    moved: tuple[Tensor, ...] | None = None
    momentum: tuple[Tensor, ...] | None = None

    def weights(self, initial: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """W = W^0 + D of each layer."""
        return tuple(initial) if self.moved is None else tuple(w + d for w, d in zip(initial, self.moved, strict=True))


@dataclass(frozen=True)
class Layer:
    """One layer of a written sequence: what it takes to apply any token's weights.

    `initial` W^0 [X, O, I]; `moved`, `momentum` [X, M, O, I] carried into each chunk, or None where all are zero;
    `inputs` a [X, M, J, I], `updates` u [X, M, J, O].
    """

    initial: Tensor
    moved: Tensor | None
    momentum: Tensor | None
    inputs: Tensor
    updates: Tensor
    coefficients: Coefficients
    decays_to_zero: bool

    def online(self, x: Tensor) -> Tensor:
        """W_t x_t for every token: [X, M, C, I] to [X, M, C, O]."""
        y = (x @ self.inputs.mT * self.coefficients.writes) @ self.updates
        decay, carry = self.coefficients.decay, self.coefficients.carry
        start = x @ self.initial.unsqueeze(1).mT
        y = y + (start if decay is None or not self.decays_to_zero else start * decay.unsqueeze(-1))
        if self.moved is not None:
            moved = x @ self.moved.mT
            y = y + (moved if decay is None else moved * decay.unsqueeze(-1))
        if self.momentum is not None and carry is not None:
            y = y + (x @ self.momentum.mT) * carry.unsqueeze(-1)
        return y


def write(
    source: Source,
    initial: Sequence[Tensor],
    coefficients: Coefficients,
    state: State,
    ends: Sequence[int],
    decays_to_zero: bool = False,
) -> tuple[list[Layer], list[State]]:
    """Write chunk after chunk, from `state`; each layer, and the state after each chunk.

    `ends[m]` is the place of the last token of chunk m; what follows it is padding (no write, no decay). With
    `decays_to_zero` alpha shrinks W itself, else W - W^0.
    """
    chunks, states = [], [state]
    for m, end in enumerate(ends):
        inputs, updates = source(m, state.weights(initial))
        chunks.append((inputs, updates))
        own = Coefficients(*(None if c is None else c[:, m] for c in coefficients))
        state = _advance(state, initial, own, end, inputs, updates, decays_to_zero)
        states.append(state)
    layers = [
        Layer(
            first,
            _stacked([s.moved[i] if s.moved else None for s in states[:-1]], first),
            _stacked([s.momentum[i] if s.momentum else None for s in states[:-1]], first),
            torch.stack([inputs[i] for inputs, _ in chunks], 1),
            torch.stack([updates[i] for _, updates in chunks], 1),
            coefficients,
            decays_to_zero,
        )
        for i, first in enumerate(initial)
    ]
    return layers, states[1:]


def _stacked(carried: Sequence[Tensor | None], like: Tensor) -> Tensor | None:
    if all(each is None for each in carried):
        return None
    return torch.stack([torch.zeros_like(like) if each is None else each for each in carried], 1)


def _advance(
    state: State,
    initial: Sequence[Tensor],
    own: Coefficients,
    end: int,
    inputs: Sequence[Tensor],
    updates: Sequence[Tensor],
    decays_to_zero: bool,
) -> State:
    """The state after one chunk, whose last token is `end`: momentum would go on moving the weights in padding."""
    last = own.writes[:, end, :, None]
    decay = None if own.decay is None else own.decay[:, end, None, None]
    moved, momentum = [], []
    for i, (a, u) in enumerate(zip(inputs, updates, strict=True)):
        d = (u * last).mT @ a
        if state.moved is not None:
            d = d + (state.moved[i] if decay is None else state.moved[i] * decay)
        if decays_to_zero and decay is not None:
            d = d + (decay - 1) * initial[i]
        if own.carry is not None and own.momentum_writes is not None and own.momentum_decay is not None:
            s = (u * own.momentum_writes.unsqueeze(-1)).mT @ a
            if state.momentum is not None:
                d = d + state.momentum[i] * own.carry[:, end, None, None]
                s = s + state.momentum[i] * own.momentum_decay.unsqueeze(-1)
            momentum.append(s)
        moved.append(d)
    return State(tuple(moved), tuple(momentum) if momentum else None)

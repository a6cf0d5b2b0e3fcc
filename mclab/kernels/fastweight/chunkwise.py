"""This module writes a sequence into a stack of fast-weight matrices in chunks, without a weight matrix per token.

Shapes: X folded batch (sequences, heads and, where segments restart, segments), M chunks, C tokens in a chunk, J writes
that a chunk's tokens see (C, or C + 1 with one carried in), I and O a layer's widths, n and w the narrower and the
wider of the two, s slots of a state (states.py).

See docs/equations.md#chunk-form.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from mclab.kernels.fastweight import writing
from mclab.kernels.fastweight.looped import BY_TORCH, Loop
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.online import Slots, online
from mclab.kernels.fastweight.rates import Coefficients, Rates
from mclab.kernels.fastweight.states import Plan, product
from mclab.kernels.fastweight.steps import Steps, steps


@dataclass(frozen=True)
class Layer:
    """One layer of a written sequence: the tensors from which the weights of any token can be applied.

    `inputs` a is [M, X, J, I], `updates` u [M, X, J, O]. `start` is W^0 as stored, or None if W^0 is zero or among the
    slots. `kept` [X, len(keep), O, I] are the weights after the chunks to keep, or None if there are none.
    """

    slots: Slots
    inputs: Tensor
    updates: Tensor
    writes: Tensor
    start: Tensor | None
    kept: Tensor | None

    def online(self, x: Tensor) -> Tensor:
        """Return W_t x_t for every token t, [M, X, C, O], from `x` [M, X, C, I]."""
        y = online(x.contiguous(), self.slots, self.writes, self.inputs, self.updates)
        if self.start is None:
            return y
        weight = self.start if self.slots.widens else self.start.mT
        by_sequence = x.transpose(0, 1).flatten(1, 2)
        return y + product(by_sequence, weight).unflatten(1, (x.shape[0], -1)).transpose(0, 1)


class Source(Protocol):
    """A sequence that is written only when it is read."""

    def read(self, q: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the output of the last layer [M, X, C, V] for q [M, X, C, K], and the kept weights of each layer.

        Token t is read with the weights W_t. The kept weights are [X, len(keep), O, I] each; the list is empty if none
        are kept.
        """

    def layers(self) -> list[Layer]:
        """Return the layers of the written sequence."""


class OneLayer(ABC):
    """A `Source` with one layer, in which token t is read with the weights W_t."""

    def read(self, q: Tensor) -> tuple[Tensor, list[Tensor]]:
        """See `Source.read`."""
        (layer,) = self.layers()
        return layer.online(q), [] if layer.kept is None else [layer.kept]

    @abstractmethod
    def layers(self) -> list[Layer]:
        """See `Source.layers`."""


@dataclass(frozen=True)
class Accumulation(OneLayer):
    """One matrix that starts at zero and whose writes `keys` [M, X, J, K], `values` [M, X, J, V] are known beforehand.

    `ends[m]` is the index of the last token of chunk m. The tokens after it are padding: they write nothing and do not
    decay, but momentum would continue to change the weights. `keep` lists the chunks whose final weights are wanted.
    """

    keys: Tensor
    values: Tensor
    coefficients: Coefficients
    ends: Sequence[int]
    keep: Sequence[int]

    def layers(self) -> list[Layer]:
        """See `Source.layers`. There is one layer."""
        known = steps(self.coefficients, self.ends)
        widens = self.keys.shape[-1] <= self.values.shape[-1]
        plan = Plan((widens,), known.slots, False, 0, tuple(self.keep))
        slots, kept = writing.accumulate(plan, self.keys, self.values, known.ends, known.mix)
        return [_layer(0, plan, known, (self.keys, self.values, slots, kept), None)]


@dataclass(frozen=True)
class Descent:
    """A sequence written by descent of the loss of its keys `k` [M, X, C, K] and values `v` [M, X, C, V].

    Descent starts at `start`, one W^0 [F, O, I] per layer, where X / F adjacent sequences share a W^0. `rates` are
    [M, X, C]. The gradients of a chunk are taken at the weights carried into it. With `from_zero` W^0 is 0. With
    `to_start` alpha shrinks W - W^0, else W itself. `ends` and `keep` are as in `Accumulation`.
    """

    net: Net
    k: Tensor
    v: Tensor
    start: Sequence[Tensor]
    rates: Rates
    ends: Sequence[int]
    keep: Sequence[int]
    from_zero: bool
    to_start: bool
    loop: Loop = BY_TORCH

    def read(self, q: Tensor) -> tuple[Tensor, list[Tensor]]:
        plan, steps, start = self._prepared()
        rates = (steps.writes, steps.factors, steps.ends, steps.mix)
        y, kept = self.loop(plan, self.net, (q, self.k, self.v), rates, start)
        return y, [w.mT if widens else w for w, widens in zip(kept, plan.widens, strict=bool(kept))]

    def layers(self) -> list[Layer]:
        plan, steps, start = self._prepared()
        each = zip(*writing.descend(plan, self.net, self.k, self.v, steps.ends, steps.mix, start), strict=True)
        return [_layer(i, plan, steps, own, start[i] if plan.to_start else None) for i, own in enumerate(each)]

    def _prepared(self) -> tuple[Plan, Steps, list[Tensor]]:
        to_start = self.to_start and not self.from_zero and self.rates.log_alpha is not None
        steps = self.loop.steps(self.rates, self.ends)
        widens = tuple(w.shape[-1] <= w.shape[-2] for w in self.start)
        plan = Plan(widens, steps.slots, to_start, 0 if self.from_zero or to_start else 1, tuple(self.keep))
        return plan, steps, [w.mT if wide else w for w, wide in zip(self.start, widens, strict=True)]


def _layer(
    i: int, plan: Plan, steps: Steps, own: tuple[Tensor, Tensor, Tensor, Tensor | None], start: Tensor | None
) -> Layer:
    (inputs, updates, slots, kept), widens = own, plan.widens[i]
    kept = kept.mT if kept is not None and widens else kept
    return Layer(Slots(slots, steps.factors, widens, plan.live), inputs, updates, steps.writes, start, kept)

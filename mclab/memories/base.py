"""The contract between a memory's update rule and everything that caches it.

A memory is a stack of fast-weight matrices. Its rule is given twice: token by token (`initial`, `begin`, `step`,
`read`, `mix`), which defines it, and for a whole sequence (`write`), which training uses; caching knows nothing else of
a memory. Shapes: R replicas, B batch,
D model width, H heads, G = R*B*H folded, T time, K key width, V value width, N segments.

See docs/equations.md#memories.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from mclab.kernels.linear.gate import Gate


class Tokens(NamedTuple):
    """What a memory gets of a sequence: keys [G, T, K], values [G, T, V], and its own rates, each [G, T] or, where
    every channel of the keys has its own, [G, T, K]."""

    k: Tensor
    v: Tensor
    rates: tuple[Tensor, ...] = ()
    low: bool = False
    """Whether the run trains in bf16: what is here is in fp32 all the same, and products need not be more exact."""

    def at(self, t: int) -> "Tokens":
        """Token t alone: [G, K], [G, V], [G] or [G, K]."""
        return Tokens(self.k[:, t], self.v[:, t], tuple(rate[:, t] for rate in self.rates))


@dataclass(frozen=True)
class State:
    """A memory between two tokens. `weights`: one matrix [G, O, I] a layer (a vector memory: one [G, K]).

    `momentum` and `anchor` (the weights at which gradients are taken) are like `weights`; `place` counts the tokens of
    the chunk so far; `window` is the last token's key and value, where the rule writes those once more; `origin` is
    W^0; `logits` are what the weights are made of, where a rule writes those.
    """

    weights: tuple[Tensor, ...]
    momentum: tuple[Tensor, ...] = ()
    anchor: tuple[Tensor, ...] = ()
    place: int = 0
    window: tuple[Tensor, ...] = ()
    origin: tuple[Tensor, ...] = ()
    logits: tuple[Tensor, ...] = ()


class Segments(Protocol):
    """How a sequence is cut and what is kept, as far as a memory needs to know (caching/segment.py)."""

    @property
    def segment(self) -> int:
        """Tokens in a block."""

    @property
    def count(self) -> int:
        """Number of blocks N."""

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The blocks that each online memory is written over, in their order."""

    @property
    def columns(self) -> int:
        """Columns of weights: kept memories and the online one."""

    @property
    def single(self) -> bool:
        """True where every kept memory is of one block and has that block's column."""

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The blocks that each kept memory holds, [first, end)."""

    @property
    def readers(self) -> tuple[tuple[int, int], ...]:
        """The blocks whose tokens read each kept memory, [first, end)."""

    def own_column(self, device: torch.device) -> Tensor:
        """[T]: the column of t's online memory."""

    def run_of_block(self, device: torch.device) -> Tensor:
        """[N]: the number of each block's run."""

    def visible(self, device: torch.device) -> Tensor:
        """[T, columns]: what t sees."""

    def holds(self, restarts: bool, device: torch.device) -> Tensor:
        """[kept, N]: whether a kept memory holds a block's writes."""


class Init(Protocol):
    """Where a segment starts (caching/init.py)."""

    @property
    def restarts(self) -> bool:
        """True where segments do not depend on each other."""

    def start(self, initial: State, last: State) -> State:
        """The state that a new segment starts from."""


class Written(Protocol):
    """A whole sequence, written: every kept memory, and the online one of every token.

    `weights` [G, T, columns] weigh kept memories and, in t's own column, its online one; None is one for each that t
    sees.
    """

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Mix outputs: sum of weight times M(q) over the memories that t sees, [G, T, V]."""

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        """As `read` with these weights in these columns and zero in all others, at the cost of the memories named.

        The last column is t's own, the online memory; the others are kept memories that t sees, each once, or t's own
        again, with weight zero, where fewer are wanted.
        """

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Mix memories: every matrix is the weighted sum over the memories that t sees, then read once: [G, T, V]."""


class Memory(nn.Module, ABC):
    """Base of the update rules."""

    #: Layers of the memory; 1 is a linear map.
    depth: int = 1

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        """Keys and values with the rates that the memory makes of the layer's input, if it has any."""
        return Tokens(k_GTK, v_GTV)

    def skip(self, tokens: Tokens) -> Tensor | None:
        """What is added once to every token's output, [G, T, V], however many memories are read; None for most
        rules."""
        return None

    @abstractmethod
    def initial(self, tokens: Tokens) -> State:
        """The state before the first token, W^0, as many as `tokens` has sequences and heads."""

    def begin(self, state: State) -> State:
        """The same state at the start of a segment, whichever state that segment starts from."""
        return state

    @abstractmethod
    def step(self, state: State, token: Tokens) -> State:
        """The state after one more token."""

    def carried(self, state: State) -> State:
        """What of a state has to be stored for the next token, no more; `resumed` makes it whole again."""
        return replace(state, origin=())

    def resumed(self, carried: State, initial: State) -> State:
        """The state that `carried` was made of; `initial` is W^0."""
        return replace(carried, origin=initial.origin)

    @abstractmethod
    def read(self, state: State, q_GK: Tensor) -> Tensor:
        """M(q): [G, V]."""

    def mix(self, states: list[State], weights: list[Tensor]) -> State:
        """Layer by layer the weighted sum of states; each weight is [G]."""
        layers = zip(*(state.weights for state in states), strict=True)
        return State(tuple(_weighted_sum(layer, weights) for layer in layers))

    @abstractmethod
    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        """Write all tokens; T is a multiple of the segment's length."""

    def gated_read(self, tokens: Tokens, q_GTK: Tensor, segment: int, gate: Callable[[], Gate]) -> Tensor | None:
        """GRM of segments that restart as one kernel, weights included, where there is one for it: [G, T, V]."""
        return None


def _weighted_sum(matrices: tuple[Tensor, ...], weights: list[Tensor]) -> Tensor:
    parts = [w.view(-1, *(1,) * (m.dim() - 1)) * m for w, m in zip(weights, matrices, strict=True)]
    return torch.stack(parts).sum(0)

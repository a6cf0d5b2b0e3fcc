"""The contract between a memory's update rule and everything that caches the memory.

A memory is a stack of fast-weight matrices. Its rule is given twice: token by token (`initial`, `begin`, `step`,
`read`, `mix`), which defines it, and for a whole sequence (`write`), which training uses. Caching knows nothing else
about a memory. Shapes: R replicas, B batch, D model width, H heads, G = R*B*H folded, T time, K key width, V value
width, N segments.

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
    """The inputs of a memory for a sequence: keys [G, T, K], values [G, T, V], and the rates of its rule.

    A rate is [G, T] or, if every channel of the keys has one, [G, T, K].
    """

    k: Tensor
    v: Tensor
    rates: tuple[Tensor, ...] = ()
    low: bool = False
    """True if the run trains in bf16. Even then these tensors are fp32, but products may be as inexact as in bf16."""

    def at(self, t: int) -> "Tokens":
        """Return the inputs for token t: [G, K], [G, V], and rates [G] or [G, K]."""
        return Tokens(self.k[:, t], self.v[:, t], tuple(rate[:, t] for rate in self.rates))


@dataclass(frozen=True)
class State:
    """A memory between two tokens. `weights` has one matrix [G, O, I] for each layer (in a vector memory one [G, K]).

    `momentum` and `anchor` (the weights at which gradients are taken) have the shapes of `weights`. `place` counts the
    tokens of the chunk so far. `window` has the key and the value of the last token, for rules that write them once
    more. `origin` is W^0. `logits` are the values from which the weights are computed, for rules that write logits.
    """

    weights: tuple[Tensor, ...]
    momentum: tuple[Tensor, ...] = ()
    anchor: tuple[Tensor, ...] = ()
    place: int = 0
    window: tuple[Tensor, ...] = ()
    origin: tuple[Tensor, ...] = ()
    logits: tuple[Tensor, ...] = ()


class Segments(Protocol):
    """How a sequence is cut and what is kept: the part of caching/segment.py that a memory needs."""

    @property
    def segment(self) -> int:
        """The number of tokens in a block."""

    @property
    def count(self) -> int:
        """The number of blocks N."""

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The blocks over which each online memory is written, [first, end), in order."""

    @property
    def columns(self) -> int:
        """The number of columns of weights: those of kept memories and of the online one."""

    @property
    def single(self) -> bool:
        """True if every kept memory holds one block, and column n belongs to block n."""

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The blocks that each kept memory holds, [first, end)."""

    @property
    def readers(self) -> tuple[tuple[int, int], ...]:
        """The blocks whose tokens read each kept memory, [first, end)."""

    def own_column(self, device: torch.device) -> Tensor:
        """Return [T]: the column of t's online memory."""

    def run_of_block(self, device: torch.device) -> Tensor:
        """Return [N]: the number of the run that each block belongs to."""

    def visible(self, device: torch.device) -> Tensor:
        """Return [T, columns]: True for the memories that t sees."""

    def holds(self, restarts: bool, device: torch.device) -> Tensor:
        """Return [kept, N]: True if a kept memory holds the writes of a block."""


class Init(Protocol):
    """The state in which a segment starts (caching/init.py)."""

    @property
    def restarts(self) -> bool:
        """True if segments do not depend on each other."""

    def start(self, initial: State, last: State) -> State:
        """Return the state that a new segment starts from."""


class Written(Protocol):
    """A whole sequence that was written: every kept memory, and the online memory of every token.

    `weights_GTN` [G, T, N] has a column for each segment. For token t it holds the weights of the kept memories that t
    sees and, in the column of t's own segment, the weight of the online memory.
    `None` means weight 1 for every memory that t sees.
    """

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Return [G, T, V]: the sum of weight times M(q) over the memories that t sees."""

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        """Return `read` with these weights in `columns_GTJ` and zero elsewhere, where only the chosen memories cost a
        read.

        The last column is t's own, the online memory. The others are different kept memories that t sees; if t chooses
        fewer, its own column is repeated with weight zero.
        """

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Return [G, T, V]: sum each matrix, by weight, over the memories that t sees, and read the sum once."""


class Memory(nn.Module, ABC):
    """The base class of the update rules."""

    #: The number of layers of the memory; 1 is a linear map.
    depth: int = 1

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        """Return keys, values and the rates of the rule, if it has any, computed from the layer's input `x_RBTD`."""
        return Tokens(k_GTK, v_GTV)

    def skip(self, tokens: Tokens) -> Tensor | None:
        """Return [G, T, V], which is added once to every token's output, whatever it reads; `None` for most rules."""
        return None

    @abstractmethod
    def initial(self, tokens: Tokens) -> State:
        """Return W^0, the state before the first token, for every sequence and head of `tokens`."""

    def begin(self, state: State) -> State:
        """Prepare `state` for the first token of a segment that starts from it."""
        return state

    @abstractmethod
    def step(self, state: State, token: Tokens) -> State:
        """Return the state after one more token."""

    def carried(self, state: State) -> State:
        """Return `state` without the parts that need not be stored for the next token; `resumed` restores them."""
        return replace(state, origin=())

    def resumed(self, carried: State, initial: State) -> State:
        """Return the full state from the part that `carried` returned; `initial` is W^0."""
        return replace(carried, origin=initial.origin)

    @abstractmethod
    def read(self, state: State, q_GK: Tensor) -> Tensor:
        """Return M(q), [G, V]."""

    def mix(self, states: list[State], weights: list[Tensor]) -> State:
        """Return the weighted sum of `states`, layer by layer; each weight is [G]."""
        layers = zip(*(state.weights for state in states), strict=True)
        return State(tuple(_weighted_sum(layer, weights) for layer in layers))

    @abstractmethod
    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        """Write all tokens and return the written sequence. T must be a multiple of the segment's length."""

    def gated_read(self, tokens: Tokens, q_GTK: Tensor, segment: int, gate: Callable[[], Gate]) -> Tensor | None:
        """Return GRM over segments that restart [G, T, V], if one kernel computes it with the weights; else `None`."""
        return None


def _weighted_sum(matrices: tuple[Tensor, ...], weights: list[Tensor]) -> Tensor:
    parts = [w.view(-1, *(1,) * (m.dim() - 1)) * m for w, m in zip(weights, matrices, strict=True)]
    return torch.stack(parts).sum(0)

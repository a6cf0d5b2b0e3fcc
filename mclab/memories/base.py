"""The contract between a memory's update rule and everything that caches it.

A memory is a stack of fast-weight matrices. Its rule is given twice: token by token (`initial`, `step`, `read`,
`mix`), which defines it, and for a whole sequence (`write`), which training uses. Shapes: G = R*B*H folded, T time,
K key width, V value width, N segments.
"""

from abc import ABC, abstractmethod
from typing import Protocol

from torch import Tensor, nn

#: One matrix [G, V, K] for each layer of the memory.
State = tuple[Tensor, ...]


class Segments(Protocol):
    """How a sequence is cut, as far as a memory needs to know (caching/segment.py)."""

    @property
    def segment(self) -> int:
        """Tokens in a segment."""

    @property
    def count(self) -> int:
        """Number of segments N."""


class Init(Protocol):
    """Where a segment starts (caching/init.py)."""

    def start(self, initial: State, last: State) -> State:
        """The state that a new segment starts from."""

    def spread(self, weights_GTN: Tensor | None, segments: Segments) -> Tensor | None:
        """For a memory that only adds: from weights on memories to weights on each segment's own writes; None is 1s."""


class Written(Protocol):
    """A whole sequence, written: every kept memory, and the online one of every token.

    `weights` has one column for each segment, t's own column weighing its online memory; None is one for each of them.
    """

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Mix outputs: sum of weight times M(q) over the memories that t sees, [G, T, V]."""

    def read_mixed(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        """Mix memories: every matrix is the weighted sum over the memories that t sees, then read once: [G, T, V]."""


class Memory(nn.Module, ABC):
    """Base of the update rules."""

    #: Layers of the memory; 1 is a linear map.
    depth: int

    @abstractmethod
    def initial(self, k_GTK: Tensor, v_GTV: Tensor) -> State:
        """The state before the first token, W^0."""

    @abstractmethod
    def step(self, state: State, k_GK: Tensor, v_GV: Tensor) -> State:
        """The state after one more token."""

    @abstractmethod
    def read(self, state: State, q_GK: Tensor) -> Tensor:
        """M(q): [G, V]."""

    def mix(self, states: list[State], weights: list[Tensor]) -> State:
        """Layer by layer the weighted sum of states; each weight is [G]."""
        layers = zip(*states, strict=True)
        return tuple(
            sum((w[:, None, None] * m for w, m in zip(weights, layer, strict=True)), start=0 * layer[0])
            for layer in layers
        )

    @abstractmethod
    def write(self, k_GTK: Tensor, v_GTV: Tensor, segments: Segments, init: Init) -> Written:
        """Write all tokens; T is a multiple of the segment's length."""

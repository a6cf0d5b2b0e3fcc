"""The base of memories of any depth that are written by gradient descent: DLA and Titans.

The rates of a token are projections of the layer's input. Each head has one rate of each kind, which all matrices of
its memory share. Shapes as in memories/base.py; a memory of depth d has widths K, 4K, ..., 4K, V. W^0 is learned at
depth 2 and more, and zero at depth 1.

See docs/equations.md#depth-and-norm, docs/equations.md#step-sizes.
"""

import math
from abc import abstractmethod
from dataclasses import replace

import torch
from torch import Tensor, nn

from mclab.config.model import MemoryMixer
from mclab.config.model.rules import layers
from mclab.kernels.fastweight import chunkwise, recurrent
from mclab.kernels.fastweight.chunkwise import Source
from mclab.kernels.fastweight.looped import Loop
from mclab.kernels.fastweight.net import EPS, Net, Objective
from mclab.kernels.fastweight.rates import Rates
from mclab.memories.base import Init, Memory, Segments, State, Tokens, Written
from mclab.memories.chunks import Chunks
from mclab.memories.fast_weights import Fold, write_in_chunks
from mclab.memories.kernel_choice import triton_precision
from mclab.replicas.layers import linear
from mclab.replicas.parameters import Constant, Normal, Values, parameter

#: The initial value of the norm's gain g.
GAIN = 0.5
#: For the soft norm: the constant that is added to the mean square, and the factor on the initial size of the last
#: matrix of W^0. With them a memory has a small output for a key that was never written
#: (docs/equations.md#depth-and-norm).
SOFT_FLOOR, SOFT_START = 0.03, 0.1


class GradientMemory(Memory):
    """A memory that is written by gradient descent. Subclasses define its rates with `starts` and `rates`."""

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.mixer, self.heads, self.depth, self.max_lr = mixer, heads, mixer.depth, mixer.max_lr
        assert mixer.rule.objective is not None
        self.objective: Objective = mixer.rule.objective
        self.chunk, self.to_zero = mixer.tokens_a_chunk, mixer.decay_to == "zero"
        self.has_momentum, self.has_anchor = mixer.rule.momentum, mixer.anchored and mixer.tokens_a_chunk > 1
        starts = self.starts(heads)
        self.project = parameter(replicas, width, heads * len(starts[0]), init=Normal(1 / math.sqrt(width)))
        self.bias = parameter(replicas, heads, len(starts[0]), init=Values(starts), decays=False)
        K, deep = width // heads, self.depth > 1
        sizes = layers(K, self.depth) if deep else []
        soft = mixer.memory_norm == "soft"
        stds = [1 / math.sqrt(into) for _, into in sizes]
        if soft and deep:
            stds[-1] *= SOFT_START
        self.start = nn.ParameterList(
            parameter(replicas, heads, out, into, init=Normal(std))
            for (out, into), std in zip(sizes, stds, strict=True)
        )
        self.adds, self.floor = deep and mixer.memory_norm in ("rms", "residual"), SOFT_FLOOR if soft else EPS
        normed = deep and mixer.memory_norm in ("rms", "soft")
        self.gain = parameter(replicas, heads, K, init=Constant(GAIN), decays=False) if normed else None

    @staticmethod
    @abstractmethod
    def starts(heads: int) -> tuple[tuple[float, ...], ...]:
        """Return for each head the initial biases of the logits of its rates."""

    @abstractmethod
    def rates(self, logits: tuple[Tensor, ...]) -> Rates:
        """Return the rates that belong to the logits of each rate."""

    def tokens(self, x_RBTD: Tensor, k_GTK: Tensor, v_GTV: Tensor) -> Tokens:
        logits = linear(x_RBTD, self.project).unflatten(-1, (self.heads, -1)) + self.bias[:, None, None]
        return Tokens(k_GTK, v_GTV, logits.transpose(2, 3).flatten(0, 2).unbind(-1))

    def initial(self, tokens: Tokens) -> State:
        first = self._first(tokens)
        return State(first, recurrent.zeros(first), first, origin=first)

    def begin(self, state: State) -> State:
        return replace(state, anchor=state.weights, place=0)

    def step(self, state: State, token: Tokens) -> State:
        rates = self.rates(token.rates)
        ones = torch.ones_like(rates.eta)
        alpha = ones if rates.log_alpha is None else rates.log_alpha.exp()
        beta = 0 * ones if rates.log_beta is None else rates.log_beta.exp()
        anchor = state.anchor if state.place % self.chunk else state.weights
        rest = recurrent.zeros(state.origin) if self.to_zero else state.origin
        net = self._net(token.k.shape[0])
        weights, momentum = recurrent.step(
            net, anchor, state.weights, state.momentum, rest, (token.k, token.v), (rates.eta, alpha, beta)
        )
        return State(weights, momentum, anchor, state.place + 1, origin=state.origin)

    def carried(self, state: State) -> State:
        momentum, anchor = state.momentum * self.has_momentum, state.anchor * self.has_anchor
        return replace(state, momentum=momentum, anchor=anchor, origin=())

    def resumed(self, carried: State, initial: State) -> State:
        momentum = carried.momentum or recurrent.zeros(carried.weights)
        anchor = carried.anchor or carried.weights
        return replace(carried, momentum=momentum, anchor=anchor, origin=initial.origin)

    def read(self, state: State, q_GK: Tensor) -> Tensor:
        return recurrent.read(self._net(q_GK.shape[0]), state.weights, q_GK)

    def write(self, tokens: Tokens, segments: Segments, init: Init) -> Written:
        fold = Fold(self.project.shape[0], self.heads)
        loop = Loop(self.mixer.memory, triton_precision(self.mixer, tokens))
        tokens = Tokens(fold(tokens.k), fold(tokens.v), tuple(fold(rate) for rate in tokens.rates))
        net = self._side_by_side(tokens.k.shape[0])

        def source(tokens: Tokens, chunks: Chunks) -> Source:
            return self._source(net, tokens, chunks, loop)

        return write_in_chunks(tokens, segments, init, self.chunk, source, net, fold)

    def _source(self, net: Net, tokens: Tokens, chunks: Chunks, loop: Loop) -> Source:
        """Return the source that writes `tokens` in `chunks`; `net` is the net of whole sequences."""
        k, v = chunks.cut(tokens.k), chunks.cut(tokens.v)
        if net.gain is not None:
            each = net.gain.expand(-1, k.shape[1] // net.gain.shape[0], -1)
            net = replace(net, gain=each.reshape(-1, 1, each.shape[2]))
        # A matrix that widens is stored transposed (kernels/fastweight/states.py). Where a pack has to copy it, the
        # copy is made in that layout at once.
        first = [_folded(w.mT).mT if w.shape[-1] <= w.shape[-2] else _folded(w) for w in self.start]
        if self.depth == 1:
            first = [k.new_zeros(1, v.shape[-1], k.shape[-1])]
        eta, *logs = self.rates(tokens.rates)
        rates = Rates(chunks.cut(eta), *(None if log is None else chunks.cut(log) for log in logs))
        return chunkwise.Descent(
            net, k, v, first, rates, chunks.ends, chunks.keep, self.depth == 1, not self.to_zero, loop
        )

    def _first(self, tokens: Tokens) -> tuple[Tensor, ...]:
        """Return W^0 for every sequence and head: one [G, O, I] for each layer."""
        G, _, K = tokens.k.shape
        if self.depth == 1:
            return (tokens.k.new_zeros(G, tokens.v.shape[-1], K),)
        return tuple(self._each(w, G) for w in self.start)

    def _net(self, folded: int) -> Net:
        gain = None if self.gain is None else self._each(self.gain, folded).unsqueeze(1)
        return Net(gain, self.objective, self.adds, self.floor)

    def _each(self, parameter_RH: Tensor, folded: int) -> Tensor:
        """Repeat a parameter for every sequence: [R, H, ...] to [G, ...]."""
        R, H = parameter_RH.shape[:2]
        return parameter_RH.unsqueeze(1).expand(-1, folded // (R * H), *parameter_RH.shape[1:]).flatten(0, 2)

    def _side_by_side(self, sequences: int) -> Net:
        """Return the net with a gain for each of the G `sequences`, in the order of `Fold`."""
        if self.gain is None:
            return Net(None, self.objective, self.adds, self.floor)
        R, H, V = self.gain.shape
        gain = self.gain.unsqueeze(2).expand(R, H, sequences // (R * H), V).reshape(-1, 1, V).contiguous()
        return Net(gain, self.objective, self.adds, self.floor)


def _folded(w_RH: Tensor) -> Tensor:
    return w_RH.flatten(0, 1)

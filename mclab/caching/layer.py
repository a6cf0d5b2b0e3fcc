"""The caching layer: it maps queries, keys and values to one output for each token, and composes the axes.

Its steps, in the order of `CachingLayer._read`, are: cut the sequence into segments, gate, write the memory, aggregate.

Shapes: R replicas, B batch, T time, D model width, H heads, K = V = D / H, G = R*B*H folded, N segments.

See docs/equations.md#caching.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.caching.activation import ACTIVATIONS
from mclab.caching.aggregate import AGGREGATES
from mclab.caching.connector import CONNECTORS
from mclab.caching.gate import GATES, InputGate, context_scores, default_scale
from mclab.caching.gate_output import GateOutput, RouteStep
from mclab.caching.init import INITS
from mclab.caching.own import OwnAggregate, OwnGate, Unread, ages
from mclab.caching.segment import ConstantSegments, Segments, segments_of
from mclab.config.model import MemoryMixer
from mclab.constants import counting
from mclab.kernels.linear.gate import Gate
from mclab.memories import MEMORIES
from mclab.memories.base import Written
from mclab.replicas.layers import autocast, rotate, widened


class AfterTraining(NamedTuple):
    """The cache of a model that was trained without one (caching/post_training.py)."""

    segment: int
    """The number of tokens between two kept states."""
    window: int
    """The number of kept states that are averaged with the online one."""
    mix: str
    """The kind of the average: of the `outputs` of these states, or of the `memories`, which are then read once."""


class CachingLayer(nn.Module):
    """A memory that is cached as the keys of `mixer` say.

    `length` is the training length, which sets the size of the input gate and limits the chunk.
    """

    def __init__(self, replicas: int, width: int, heads: int, length: int, mixer: MemoryMixer) -> None:
        super().__init__()
        self.mixer, self.heads = mixer, heads
        #: Set while a model that was trained without a cache is read with one; otherwise `None`.
        self.post_training: AfterTraining | None = None
        self.memory = MEMORIES[mixer.memory](replicas, width, heads, mixer.fitted(length))
        gate = mixer.read_gate
        slots = self._segments(length).most_slots
        if "gate" in mixer.own:
            self.gate: nn.Module = OwnGate(replicas, width, heads, mixer)
        else:
            self.gate = InputGate(replicas, width, heads, slots) if gate == "input" else GATES[gate]()
        self.aggregate = OwnAggregate(replicas, width, heads, mixer) if "aggregate" in mixer.own else None
        # If the scores get no gradient, W_u would get none either: then ssc scores with the query instead of x W_u.
        scored = self.gate.needs_scores or mixer.aggregate == "ssc"
        connector = mixer.connector if mixer.trained_scores and scored else "shared"
        self.connector = CONNECTORS[connector](replicas, width)
        #: The settings of a training step for the routes of ssc (train/routing.py); `None` in evaluation.
        self.route_step: RouteStep | None = None
        #: Set while weights are recorded: it wraps a written sequence to record its reads (caching/record_weights.py).
        self.recorder: Callable[[Written, GateOutput], Written] | None = None

    def forward(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, rotary: bool = False) -> Tensor:
        """Read the cached memory for every token. All arguments and the result are [R, B, T, D].

        Under bf16 autocast memories and gates are kept in fp32.
        """
        low = torch.bfloat16 in (q.dtype, k.dtype, v.dtype)
        x, q, k, v = widened(x, q, k, v)
        with autocast(x.device, False):
            return self._read(x, q, k, v, rotary, low)

    def _read(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, rotary: bool, low: bool = False) -> Tensor:
        mixer, T = self.mixer, x.shape[2]
        segments = self._segments(T)
        if segments.padding:  # F.pad copies even if it adds nothing
            x, q, k, v = (F.pad(z, (0, 0, 0, segments.padding)) for z in (x, q, k, v))
        q_GTK, k_GTK, v_GTV = (self._fold(z) for z in (q, k, v))
        pooled_GTK = k_GTK  # before the rotary embedding (docs/equations.md#context-score)
        if rotary or mixer.rule.rotary:
            q_GTK, k_GTK = rotate(q_GTK), rotate(k_GTK)
        tokens = self.memory.tokens(x, k_GTK, v_GTV)._replace(low=low)
        if self.recorder is None and self.post_training is None:

            def gate() -> Gate:
                return self._kernel_gate(x, q, pooled_GTK, segments)

            y_GTV = self.memory.gated_read(tokens, q_GTK, segments.segment, gate)
            if y_GTV is not None:
                return self._unfold(y_GTV, x.shape[0])[:, :, :T]
        gated = self._gate_output(x, q, pooled_GTK, segments)
        init = mixer.init if self.post_training is None else "checkpoint"
        y_GTV = self._aggregated(self.memory.write(tokens, segments, INITS[init]), q_GTK, gated, segments)
        skipped = self.memory.skip(tokens)
        if skipped is not None:
            y_GTV = y_GTV + skipped
        return self._unfold(y_GTV, x.shape[0])[:, :, :T]

    def _aggregated(self, written: Written, q_GTK: Tensor, gated: GateOutput, segments: Segments) -> Tensor:
        """Return [G, T, V]: the output of each token, from the memories that it sees."""
        if self.recorder is not None and self.aggregate is None:
            written = self.recorder(written, gated)
        if self.post_training is not None:
            read = written.read if self.post_training.mix == "outputs" else written.read_mixed
            return read(q_GTK, self._equal_weights(segments, q_GTK))
        if self.aggregate is None:
            return AGGREGATES[self.mixer.aggregate](written, q_GTK, gated)
        if self.recorder is not None:  # a user's aggregation reads memory by memory: record once, here
            self.recorder(Unread(), gated).read(q_GTK, self.aggregate.weights(q_GTK, gated))
        y_GTV: Tensor = self.aggregate(written, q_GTK, gated, ages(segments, q_GTK.device))
        return y_GTV

    def _equal_weights(self, segments: Segments, q_GTK: Tensor) -> Tensor:
        """Return equal weights [G, T, N] on the last `window` kept states and the online memory."""
        assert self.post_training is not None
        block = segments.own_column(q_GTK.device)[:, None]
        column = counting(segments.columns, q_GTK.device)
        read_TN = (column <= block) & (column >= block - self.post_training.window)
        weights_TN = read_TN.to(q_GTK.dtype) / read_TN.sum(-1, keepdim=True)
        return weights_TN.expand(q_GTK.shape[0], -1, -1)

    def _segments(self, length: int) -> Segments:
        if self.post_training is not None:
            return ConstantSegments(length, min(length, self.post_training.segment))
        if self.mixer.aggregate == "none":
            return ConstantSegments(length, length)
        return segments_of(self.mixer, length)

    def _compared(self, x: Tensor, q: Tensor, k_GTK: Tensor) -> tuple[Tensor, Tensor, float]:
        """Return the inputs of the context scores: u [G, T, K], the vectors to pool [G, T, K], and the scale."""
        u_GTK, scale = self._fold(self.connector(x, q)), self.mixer.scale
        if scale is None:
            scale = default_scale(self.mixer.pool, self.mixer.pool_of, u_GTK.shape[-1])
        return u_GTK, k_GTK if self.mixer.pool_of == "keys" else self._fold(x), scale

    def _kernel_gate(self, x: Tensor, q: Tensor, k_GTK: Tensor, segments: Segments) -> Gate:
        """Return the inputs of a kernel that makes the weights gamma itself (kernels/linear/flash_grm.py)."""
        if self.mixer.read_gate == "context":
            u_GTK, pooled_GTK, scale = self._compared(x, q, k_GTK)
            return Gate(u_GTK, pooled_GTK, scale, self.mixer.pool == "mean")
        return Gate(logits=self.gate(x, None, segments)) if self.mixer.read_gate == "input" else Gate()

    def _gate_output(self, x: Tensor, q: Tensor, k_GTK: Tensor, segments: Segments) -> GateOutput:
        scores = None
        if self.gate.needs_scores or self.mixer.aggregate == "ssc":
            u_GTK, pooled_GTK, scale = self._compared(x, q, k_GTK)
            scores = context_scores(u_GTK, pooled_GTK, segments, self.mixer.pool, scale)
        return GateOutput(
            visible_TN=segments.visible(x.device),
            own_TN=segments.own(x.device),
            past_TN=segments.past(x.device),
            logits_GTN=self.gate(x, scores, segments),
            scores_GTN=scores,
            activation=ACTIVATIONS[self.mixer.gate_activation],
            k=self.mixer.k,
            renormalise=self.mixer.renormalise,
            route=self.mixer.route,
            step=self.route_step,
        )

    def _fold(self, x_RBTD: Tensor) -> Tensor:
        return x_RBTD.unflatten(-1, (self.heads, -1)).transpose(2, 3).flatten(0, 2)

    def _unfold(self, y_GTV: Tensor, replicas: int) -> Tensor:
        return y_GTV.unflatten(0, (replicas, -1, self.heads)).transpose(2, 3).flatten(-2)

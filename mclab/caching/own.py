"""Gates and aggregations of the user's own: functions or modules that are called with the arguments that they name.

They get one replica: B sequences with H heads. docs/extending.md lists the arguments that they may name. Shapes: G =
R*B*H folded, T time, N columns as in caching/segment.py; a token's own column is its online memory.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mclab.caching.gate_output import GateOutput
from mclab.caching.segment import Segments
from mclab.config.model import MemoryMixer
from mclab.config.own import KINDS, Part
from mclab.constants import counting, integers
from mclab.memories.base import Written
from mclab.own.found import only_named
from mclab.replicas.stacked import stacked


def ages(segments: Segments, device: torch.device) -> Tensor:
    """Return [T, N]: how many segments before t's segment each memory ends.

    It is 1 if the memory ends with the segment before; 0 for the online memory and for memories that do not end before
    t's segment.
    """
    run_N = segments.run_of_block(device)
    run_T = run_N.unsqueeze(1).expand(-1, segments.segment).flatten()
    last_n = run_N[integers(tuple(end - 1 for _, end in segments.spans), device).long()]
    past_TN = F.pad(run_T[:, None] - last_n, (0, segments.columns - len(segments.spans)))
    return past_TN.clamp(min=0).masked_fill(segments.own(device), 0)


class _Called(nn.Module):
    """A user's part that is called once for each replica, with the arguments that it names."""

    axis: str

    def __init__(self, replicas: int, width: int, heads: int, mixer: MemoryMixer) -> None:
        super().__init__()
        path, keywords = mixer.own[self.axis]
        part = Part(self.axis, f"model.mixer.{self.axis}", f"model.mixer.{self.axis}_args", path, keywords)
        self.replicas, self.heads = replicas, heads
        self.part = stacked(replicas, part, width, heads)
        self.names = only_named(self.part.template, KINDS[self.axis].called)

    def _call(self, given: Mapping[str, Tensor | None], by_head: tuple[str, ...], by_row: tuple[str, ...]) -> Tensor:
        """Return the results of the part for all replicas, [G, ...].

        The part gets the values of `given` that it names, cut to one replica: a value in `by_head` from [G, ...] to [B,
        H, ...], a value in `by_row` from [R, B, ...] to [B, ...]. All other values are passed unchanged.
        """

        def of(name: str, replica: int) -> Tensor | None:
            value = given[name]
            if value is None or name not in (*by_head, *by_row):
                return value
            return value[replica] if name in by_row else value.unflatten(0, (self.replicas, -1, self.heads))[replica]

        def act(part: Any, replica: int) -> Tensor:
            found: Tensor = part(**{name: of(name, replica) for name in self.names})
            return found

        return torch.stack(self.part.each(act)).flatten(0, 2)


class OwnGate(_Called):
    """A user's gate, which returns logits [G, T, N] from the arguments that it names.

    It may name the context scores, the layer's input, the ages, and the mask of visible memories.
    """

    axis = "gate"

    @property
    def needs_scores(self) -> bool:
        """True if the gate names the context scores among its arguments."""
        return "scores" in self.names

    def forward(self, x_RBTD: Tensor, scores_GTN: Tensor | None, segments: Segments) -> Tensor:
        device = x_RBTD.device
        return self.logits(x_RBTD, scores_GTN, ages(segments, device), segments.visible(device))

    def logits(self, x_RBTD: Tensor, scores_GTN: Tensor | None, age_TN: Tensor, visible_TN: Tensor) -> Tensor:
        """Return logits [G, T, N] of some tokens, given the age of each memory and which memories the tokens see."""
        given = {"x": x_RBTD, "scores": scores_GTN, "age": age_TN, "visible": visible_TN}
        logits = self._call(given, by_head=("scores",), by_row=("x",))
        return logits.expand(-1, *age_TN.shape)


class OwnAggregate(_Called):
    """A user's aggregation: it returns one output per token, from its reads of all memories and the weights."""

    axis = "aggregate"

    def forward(self, written: Written, q_GTK: Tensor, gated: GateOutput, age_TN: Tensor) -> Tensor:
        """Return the aggregated reads of the memories, [G, T, V].

        The memories are read one after the other, one per column.
        """
        visible_TN = gated.visible_TN
        weights = self.weights(q_GTK, gated)
        column = counting(visible_TN.shape[1], q_GTK.device)
        one = [(visible_TN & (column == n)).to(q_GTK.dtype).expand(len(q_GTK), -1, -1) for n in range(len(column))]
        reads = torch.stack([written.read(q_GTK, each) for each in one], 2)
        return self.output(reads, weights, q_GTK, age_TN, visible_TN)

    @staticmethod
    def weights(q_GTK: Tensor, gated: GateOutput) -> Tensor:
        """Return gamma [G, T, N]; without a gate 1 for every visible memory and 0 elsewhere."""
        found = gated.weights()
        return gated.visible_TN.to(q_GTK.dtype).expand(len(q_GTK), -1, -1) if found is None else found

    def output(
        self, reads_GTNV: Tensor, weights_GTN: Tensor, q_GTK: Tensor, age_TN: Tensor, visible_TN: Tensor
    ) -> Tensor:
        """Return [G, T, V]: the outputs of some tokens."""
        given = {"reads": reads_GTNV, "weights": weights_GTN, "q": q_GTK, "age": age_TN, "visible": visible_TN}
        return self._call(given, by_head=("reads", "weights", "q"), by_row=())


class Unread:
    """A stand-in for a written sequence that reads nothing, so that weights can be recorded without a read."""

    def read(self, q_GTK: Tensor, weights_GTN: Tensor | None) -> Tensor:
        return q_GTK

    def read_chosen(self, q_GTK: Tensor, weights_GTJ: Tensor, columns_GTJ: Tensor) -> Tensor:
        return q_GTK

    read_mixed = read

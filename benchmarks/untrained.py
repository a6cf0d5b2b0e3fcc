"""How well an untrained Titans memory answers, by norm, start and segments: what foresees when training starts.

Of 64 sequences, 64 random unit keys and values each are written; each key is then asked, and the kept memories' answers
are summed as without a gate. From the answers what is linear in the query is taken, since the next layer can. Then

- recall: the right value's mean product with the answer over the standard deviation of the other values' products,
- left: the share of the answers' power that is not linear in the query.

See docs/equations.md#depth-and-norm.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.config.model.rules import layers
from mclab.kernels.fastweight import recurrent
from mclab.kernels.fastweight.net import EPS, Net
from mclab.memories.base_gradient import GAIN, SOFT_FLOOR, SOFT_START

SEQUENCES, LENGTH, WIDTH, VALUE = 64, 64, 16, 0.3
#: Where a single head's rates start: half of the bound, momentum and decay as in memories/titans.py.
ETA, BETA, ALPHA = 0.5, 1 / (1 + math.exp(-1.0)), 1 / (1 + math.exp(-5.0))


@dataclass(frozen=True)
class Case:
    """`segment` None: one memory over the whole sequence. `last` scales the start of the last matrix."""

    name: str
    depth: int = 2
    norm: str = "rms"
    segment: int | None = 8
    chunk: int = 8
    last: float = 1.0
    gain: float = GAIN
    max_lr: float = 1.0

    def net(self) -> Net:
        normed = self.depth > 1 and self.norm in ("rms", "soft")
        gain = torch.full((SEQUENCES, 1, WIDTH), self.gain) if normed else None
        skip = self.depth > 1 and self.norm in ("rms", "residual")
        return Net(gain, "l2", skip, SOFT_FLOOR if self.norm == "soft" else EPS)


CASES = (
    Case("depth 1", depth=1),
    Case("rms, no cache", segment=None),
    Case("rms"),
    Case("rms, segments of 16 in chunks of 4", segment=16, chunk=4),
    Case("rms, segments of 16 in chunks of 8", segment=16),
    Case("rms, g from 4", gain=4.0),
    Case("no norm", norm="none"),
    Case("no norm, last start 0.1", norm="none", last=0.1),
    Case("no norm, last start 0.1, max_lr 4", norm="none", last=0.1, max_lr=4.0),
    Case("residual, last start 0.1", norm="residual", last=0.1),
    Case("soft", norm="soft", last=SOFT_START),
    Case("soft, segments of 16 in chunks of 8", norm="soft", last=SOFT_START, segment=16),
    Case("soft, no cache", norm="soft", last=SOFT_START, segment=None),
    Case("soft, depth 3", norm="soft", last=SOFT_START, depth=3, segment=16),
    Case("soft, depth 4", norm="soft", last=SOFT_START, depth=4, segment=16),
)


def main() -> None:
    print("\nan untrained Titans memory, segments and chunks of 8 unless said, kept memories summed")
    for case in CASES:
        recall, left = measured(case)
        print(f"{case.name:36}  recall {recall:.2f}  left {left:.0%}")


def measured(case: Case) -> tuple[float, float]:
    """Recall and what is left, of the same keys, values and starts for every case of a depth."""
    generator = torch.Generator().manual_seed(0)
    k = F.normalize(torch.randn(SEQUENCES, LENGTH, WIDTH, generator=generator), dim=-1)
    v = VALUE * torch.randn(SEQUENCES, LENGTH, WIDTH, generator=generator)
    net, kept = case.net(), written(case, k, v, generator)
    answers = sum(torch.stack([recurrent.read(net, w, k[:, t]) for t in range(LENGTH)], 1) for w in kept)
    assert isinstance(answers, Tensor)
    queries = torch.cat((k, torch.ones_like(k[..., :1])), -1).flatten(0, 1)
    flat = answers.flatten(0, 1)
    rest = (flat - queries @ torch.linalg.lstsq(queries, flat).solution).view_as(answers)
    products = F.normalize(rest, dim=-1) @ v.mT
    own = torch.eye(LENGTH, dtype=torch.bool)
    recall = products[:, own].mean() / products[:, ~own].std()
    return recall.item(), (rest.square().sum() / answers.square().sum()).item()


def written(case: Case, k: Tensor, v: Tensor, generator: torch.Generator) -> list[tuple[Tensor, ...]]:
    """The memory at the end of every segment, each from W^0."""
    sizes = layers(WIDTH, case.depth) if case.depth > 1 else [(WIDTH, WIDTH)]
    scales = [*[1.0] * (len(sizes) - 1), case.last if case.depth > 1 else 0.0]
    start = tuple(
        (scale * torch.randn(1, out, into, generator=generator) / math.sqrt(into)).expand(SEQUENCES, -1, -1)
        for (out, into), scale in zip(sizes, scales, strict=True)
    )
    eta = torch.full((SEQUENCES,), ETA * case.max_lr * (1 - BETA) / case.chunk)
    alpha, beta = torch.full_like(eta, ALPHA), torch.full_like(eta, BETA)
    segment = case.segment or LENGTH
    net, kept = case.net(), []
    for first in range(0, LENGTH, segment):
        weights, momentum = start, recurrent.zeros(start)
        for t in range(first, first + segment):
            if (t - first) % case.chunk == 0:
                anchor = weights
            token, rates = (k[:, t], v[:, t]), (eta, alpha, beta)
            weights, momentum = recurrent.step(net, anchor, weights, momentum, start, token, rates)
        kept.append(weights)
    return kept

"""The `memory-caching` package's layer and ours, with the same weights and by its conventions.

Those are: checkpoints, pool by sum, scale 1, keys and queries neither convolved nor normalised, one bias-free
projection each for q, k, v, u and the output; constant rates. Its Titans with `gradient_descent` adds gradients up and
subtracts the sum, which descends as ours does (with `paper` it climbs). Its loss, like ours, has no factor 1/2, and its
activation is the exact GELU.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mclab.caching.layer import CachingLayer
from mclab.config.model import MemoryMixer
from mclab.config.model.rules import EXPANSION
from mclab.replicas.layers import linear

DIM, HEADS, SEGMENT = 64, 2, 64
#: Titans' constants: step size, momentum, what is retained. SWLA's: alpha, beta, lambda.
STEP, MOMENTUM, RETAINED = 0.05, 0.9, 0.99
SWLA = (0.95, 0.3, 0.8)


@dataclass(frozen=True)
class Case:
    """`mode` is theirs for Titans: whether gradients pass through writes."""

    memory: str
    aggregate: str
    segment: int = SEGMENT
    mode: str = "differentiable"

    @property
    def name(self) -> str:
        return f"{self.memory} {self.aggregate}" + (f" ({self.mode})" if self.memory == "titans" else "")


def theirs(case: Case) -> Any:
    """Their layer; raises ImportError where the package is missing (benchmarks/peers.txt)."""
    from memory_caching.config import MCConfig
    from memory_caching.layer import MemoryCachingLayer

    config = MCConfig(
        d_model=DIM,
        num_heads=HEADS,
        backend=case.memory,
        aggregation=case.aggregate,
        segment_size=case.segment,
    )
    return MemoryCachingLayer(config=config, backend=_backend(case))


def _backend(case: Case) -> Any:
    from memory_caching.backends.linear import LinearMemoryBackend
    from memory_caching.backends.swla import SWLABackend
    from memory_caching.config import SWLAConfig

    if case.memory == "linear":
        return LinearMemoryBackend()
    if case.memory == "swla":
        return SWLABackend(SWLAConfig(*SWLA))
    return titans(case.mode)


def titans(mode: str) -> Any:
    """Their Titans memory, started from random matrices and kept without biases.

    It starts at zero, where no layer of depth 2 gets a gradient through the other, so it would never learn.
    """
    from memory_caching.backends.titans import TitansBackend, TitansState
    from memory_caching.config import TitansConfig

    class Started(TitansBackend):
        def __init__(self, config: TitansConfig) -> None:
            super().__init__(config)
            draw = torch.Generator().manual_seed(0)
            self.start = [
                (torch.randn(HEADS, out, into, generator=draw, dtype=torch.float64) / math.sqrt(into)).requires_grad_()
                for out, into in self._shapes(DIM // HEADS)
            ]

        def init_state(self, *, batch_size: int, dtype: torch.dtype, **kind: Any) -> TitansState:
            zero = super().init_state(batch_size=batch_size, dtype=dtype, **kind)
            weights = tuple(w.to(dtype).expand(batch_size, -1, -1, -1) for w in self.start)
            return TitansState(weights, zero.biases, zero.s_w, zero.s_b)

        def update(self, state: TitansState, k_t: Tensor, v_t: Tensor) -> TitansState:
            new = super().update(state, k_t, v_t)
            zeros = tuple(torch.zeros_like(b) for b in new.biases)
            return TitansState(new.weights, zeros, new.s_w, zeros)

    return Started(
        TitansConfig(
            memory_width=EXPANSION * DIM // HEADS,
            memory_depth=2,
            inner_update_mode=mode,
            step_size=STEP,
            momentum=MOMENTUM,
            retention_alpha=RETAINED,
            update_convention="gradient_descent",
        )
    )


class Ours:
    """Our caching layer between their projections. Chunks above 1 and restarts are not what theirs computes."""

    def __init__(self, peer: Any, case: Case, chunk: int = 1, init: str = "checkpoint") -> None:
        # With sigmoid 1/2 for the step, eta = max_lr (1 - beta) / (2 C) is their step size.
        max_lr = 2 * chunk * STEP / (1 - MOMENTUM)
        mixer = MemoryMixer.model_validate(
            {
                "memory": case.memory,
                "aggregate": case.aggregate,
                "segment": case.segment,
                "init": init,
                "pool": "sum",
                "scale": 1.0,
                "k": 2,
                "depth": 2,
                "chunk": chunk,
                "max_lr": max_lr,
                "decay_to": "zero",
                "memory_norm": "none",
            }
        )
        dtype = peer.q_proj.weight.dtype
        self.caching = CachingLayer(1, DIM, HEADS, case.segment, mixer).to(dtype)
        self.weights = [p.weight.detach().t()[None].clone().requires_grad_() for p in projections(peer)]
        scored = case.aggregate != "residual"
        if scored:
            self.caching.connector.project.weight = torch.nn.Parameter(self.weights[3].detach().clone())
        self.used = [0, 1, 2, 4, *([3] if scored else [])]
        self._set_memory(peer, case)

    def _set_memory(self, peer: Any, case: Case) -> None:
        memory = self.caching.memory
        if case.memory == "linear":
            return
        constants = SWLA if case.memory == "swla" else (0.5, RETAINED, MOMENTUM)
        with torch.no_grad():
            memory.project.zero_()
            memory.bias.copy_(torch.tensor([math.log(c / (1 - c)) for c in constants], dtype=torch.float64))
            for own, other in zip(getattr(memory, "start", ()), getattr(peer.backend, "start", ()), strict=True):
                own.copy_(other[None])

    def parameters(self) -> list[Tensor]:
        """The projections that count, as `their_parameters` has them, then W^0."""
        own = [*self.weights[:3], None, self.weights[4]]
        if 3 in self.used:
            own[3] = self.caching.connector.project.weight
        return [w for i in self.used if (w := own[i]) is not None] + list(getattr(self.caching.memory, "start", ()))

    def their_parameters(self, peer: Any) -> list[Tensor]:
        every = projections(peer)
        return [*(every[i].weight for i in self.used), *getattr(peer.backend, "start", ())]

    def __call__(self, x_BTD: Tensor) -> Tensor:
        q, k, v, _, out = self.weights
        x = x_BTD[None]
        y = self.caching(x, linear(x, q), linear(x, k), linear(x, v))
        return linear(y, out)[0]


def projections(peer: Any) -> list[Any]:
    return [peer.q_proj, peer.k_proj, peer.v_proj, peer.u_proj, peer.o_proj]

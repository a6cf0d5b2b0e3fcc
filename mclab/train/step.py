"""One training step of a pack, as one function of tensors that stay at their addresses.

The forward pass, loss, backward pass, clipping and AdamW of a pack read a batch that is copied into fixed buffers, and
numbers on the device: the step, the learning-rate factors, which replicas are alive. Nothing is read back and no shape
depends on data, so on CUDA the whole step is captured once for each shape of batch and replayed as one graph; on other
devices the function itself is called. With `--compile` its forward and backward pass run through torch.compile.
Shapes: R replicas, B batch, T time, Q scored positions.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from mclab.config.model import ModuleMixer
from mclab.config.run import RunConfig
from mclab.constants import holdings
from mclab.replicas.layers import autocast
from mclab.tasks import Batch
from mclab.train.compiled import Loss
from mclab.train.optim import schedule
from mclab.train.pack import Pack
from mclab.train.routing import Routing

#: Steps to run before a capture; in these, libraries choose their algorithms and tables are made.
WARM_UP = 2


class Step:
    """The training step of a pack.

    `number` [1], on the device, is the number of the last step; a resumed pack sets it.
    """

    def __init__(self, pack: Pack, routing: Routing, device: torch.device) -> None:
        self.pack, self.routing, self.device, run = pack, routing, device, pack.config
        self.precision = run.train.precision
        self.number = routing.number
        factors = [0.0, *(schedule(step, run.train.steps, run.train.warmup) for step in range(run.train.steps))]
        self.factors = torch.tensor(factors, dtype=torch.float64).to(pack.values_RP)
        self.loss_R, self.norm_R = (pack.values_RP.new_zeros(len(pack.runs), dtype=torch.float32) for _ in range(2))
        if self.precision == "fp64":
            self.loss_R, self.norm_R = self.loss_R.double(), self.norm_R.double()
        self.loss = Loss(device)
        self.captures = device.type == "cuda" and why_not(run) is None
        self._static: dict[tuple[object, ...], _Static] = {}
        self._pool: Any = None

    def __call__(self, batch: Batch, step: int) -> tuple[Tensor, Tensor]:
        """Train on `batch`; return its losses [R] and the gradient norms [R], both before the update.

        `step` is 1-based and one more than that of the last call.
        """
        phase = self.routing.phase(step)
        key = (batch.tokens.shape, batch.positions.shape, phase)
        static = self._static.get(key)
        if static is None:
            # A phase that has ended does not return, and a graph holds memory.
            self._static = {known: one for known, one in self._static.items() if known[-1] == phase}
            static = self._static[key] = self._made(batch, phase)
        static.load(batch)
        static.run()
        return self.loss_R.clone(), self.norm_R.clone()

    def autocast(self) -> AbstractContextManager[object]:
        """Return the autocast context for the model's forward pass."""
        return autocast(self.device, self.precision == "bf16")

    @property
    def state(self) -> list[Tensor]:
        """The tensors that a step changes."""
        pack = self.pack
        return [*pack.state, self.number, self.loss_R, self.norm_R]

    def _made(self, batch: Batch, phase: bool) -> "_Static":
        fields = (batch.tokens, batch.positions, batch.answers)
        tokens, positions, answers = (field.clone(memory_format=torch.contiguous_format) for field in fields)
        static = _Static([tokens, positions, answers], lambda: self._work(tokens, positions, answers, phase))
        if self.captures:
            self._pool = self._pool or torch.cuda.graph_pool_handle()
            static.capture(self.state, self._pool)
        return static

    def _work(self, tokens_RBT: Tensor, positions_RBQ: Tensor, answers_RBQ: Tensor, early: bool) -> None:
        """Do one training step on these tensors."""
        self.number += 1
        with self.autocast(), self.routing.within(early, tokens_RBT.shape[-1]):
            loss_R = self.loss(self.pack.model, (tokens_RBT, positions_RBQ, answers_RBQ), early)
        norm_R = self.pack.update(loss_R, self.number.squeeze(), self.factors.index_select(0, self.number).squeeze())
        self.loss_R.copy_(loss_R.detach())
        self.norm_R.copy_(norm_R)


class _Static:
    """The fixed buffers of a batch, and the function that trains on their content."""

    def __init__(self, tensors: list[Tensor], run: Callable[[], None]) -> None:
        self.tensors, self.run = tensors, run
        self._held: list[Tensor] = []

    def load(self, batch: Batch) -> None:
        """Copy `batch` into the buffers."""
        torch._foreach_copy_(self.tensors, [batch.tokens, batch.positions, batch.answers])

    def capture(self, state: Sequence[Tensor], pool: Any) -> None:
        """Capture the work of `run` as a CUDA graph, which `run` replays from now on.

        `state` is unchanged at the end: a capture computes nothing, and the changes of the warm-up are undone. Graphs
        whose only results are in `state` may share the memory of `pool`.
        """
        work, before = self.run, [tensor.clone() for tensor in state]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                work()
        torch.cuda.current_stream().wait_stream(side)
        torch._foreach_copy_(list(state), before)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            work()
        self._held, self.run = holdings(), graph.replay


def why_not(run: RunConfig) -> str | None:
    """Return why the steps of `run` are not captured on CUDA; `None` if they are."""
    if any(isinstance(mixer, ModuleMixer) or getattr(mixer, "own", None) for mixer in run.model.mixers):
        return "a module of the user's own may ask the device for values"
    return None

"""The loss of a training step, eager or through torch.compile, whose backward pass is then compiled too.

Each model, shape of batch and phase of a route is one graph, and packs that are alike share it within a process. Torch
keeps graphs on disk (docs/grids.md#compiled-steps). A compiled step computes with torch's forms alone, and what it
gives differs from an eager step by rounding.
"""

import os
import warnings
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from mclab.kernels import compile_mode
from mclab.models.lm import LM
from mclab.train.evaluate import loss_per_replica

#: What torch.compile takes as a backend: a name, or a function.
Backend = str | Callable[..., Any]
#: How many graphs a process may hold: torch refuses more, since each call looks for its graph among them.
GRAPHS = 512
#: How far the gradients of a compiled step may be from an eager step's, as relative RMS: at most `CLOSE`, and in a bf16
#: run, where both round often, `CLOSE_BF16`. A wrong gradient is off by far more: torch 2.11 compiles the rates of
#: swla, Mamba-2, gated delta, RWKV-7 and Memora without an error to gradients that are wrong in their first digit.
CLOSE, CLOSE_BF16 = 1e-3, 5e-2
#: The most characters of a compiler's error that are kept.
_LONGEST = 200


def eager_loss(model: LM, tokens_RBT: Tensor, positions_RBQ: Tensor, answers_RBQ: Tensor) -> Tensor:
    """[R]: the loss of each replica on a batch, which is in fp32 also where the model computes in bf16."""
    logits = model(tokens_RBT, positions_RBQ)
    return loss_per_replica(logits.float() if logits.dtype == torch.bfloat16 else logits, answers_RBQ)


class Loss:
    """The loss of a pack's steps, compiled if this process compiles. `backend` is that of torch.compile.

    If compiling fails, every later step of the process is eager, and `state` says why.
    """

    def __init__(self, device: torch.device, backend: Backend = "inductor") -> None:
        self.device, self.backend = device, backend
        self.asked, self.compiled, self.eager = compile_mode.asked(), False, False
        self._tried: set[Hashable] = set()

    @property
    def state(self) -> str:
        """Whether the steps so far were compiled: yes, no, or in part; with the reason where the compiler failed."""
        if not self.asked:
            return "no"
        if not self.eager:
            return "yes" if self.compiled else "no"
        return f"{'in part' if self.compiled else 'no'} ({compile_mode.failed()})"

    def __call__(self, model: LM, batch: tuple[Tensor, Tensor, Tensor], early: bool) -> Tensor:
        """[R]: the loss of each replica on the tokens, positions and answers of `batch`; `early` is the phase."""
        if self.asked and not compile_mode.failed():
            key = (*(tensor.shape for tensor in batch), early)
            if key in self._tried or self._works(model, batch):
                self._tried.add(key)
                self.compiled = True
                return _compiled(self.backend)(model, *batch)
        self.eager = True
        return eager_loss(model, *batch)

    def _works(self, model: LM, batch: tuple[Tensor, Tensor, Tensor]) -> bool:
        """Whether both passes compile, with an eager step's gradients, as one try shows. A failure is final.

        The try changes nothing.
        """
        reason = compile_mode.missing(self.device.type) if self.backend == "inductor" else ""
        try:
            if not reason:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the compiler warns of torch's own code
                    found = _gradients(_compiled(self.backend), model, batch)
                gap = _gap(found, _gradients(eager_loss, model, batch))
                if not gap <= (CLOSE_BF16 if torch.is_autocast_enabled(self.device.type) else CLOSE):
                    reason = f"its gradients differ from an eager step's by {gap:.1g} of their size"
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # whatever a compiler raises
            reason = _reason(error)
        if reason:
            compile_mode.give_up(reason)
        return not reason


@cache
def _compiled(backend: Backend) -> Callable[..., Tensor]:
    """`eager_loss` through torch.compile. Its first call with a new kind of model or shape of batch compiles."""
    from torch._dynamo import config as limits
    from torch._inductor import config as inductor

    limits.recompile_limit = max(limits.recompile_limit, GRAPHS)
    limits.accumulated_recompile_limit = max(limits.accumulated_recompile_limit, GRAPHS)
    if backend == "inductor" and "TORCHINDUCTOR_COMPILE_THREADS" not in os.environ:
        # A worker has a core or a GPU for itself: more compilers at once would only take it from the other workers.
        inductor.compile_threads = 1
    return torch.compile(eager_loss, backend=backend, fullgraph=True, dynamic=False)


def _gradients(loss: Callable[..., Tensor], model: LM, batch: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
    """Return the gradients of all parameters, zeros for a parameter that has no part in the loss."""
    loss_R = loss(model, *batch)
    parameters = list(model.parameters())
    found = torch.autograd.grad(loss_R, parameters, torch.ones_like(loss_R), allow_unused=True, materialize_grads=True)
    return list(found)


def _gap(found: list[Tensor], wanted: list[Tensor]) -> float:
    """Return the root of the mean squared difference of all numbers, relative to that of `wanted`."""
    off, size = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for one, other in zip(found, wanted, strict=True):
        off += (one.double() - other.double()).square().sum().cpu()
        size += other.double().square().sum().cpu()
    return float((off / size.clamp_min(torch.finfo(torch.float64).tiny)).sqrt())


def _reason(error: BaseException) -> str:
    """The first line of the error that caused `error`, with its kind."""
    while inner := getattr(error, "inner_exception", None) or error.__cause__:
        error = inner
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:_LONGEST]

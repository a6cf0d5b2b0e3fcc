"""Train a pack from its configs to its outcomes. Writes nothing."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.params import state_floats
from mclab.config.run import RunConfig
from mclab.tasks import Batch
from mclab.train.data import TrainData
from mclab.train.evaluate import EvalSet, loss_per_replica
from mclab.train.host import prepare
from mclab.train.optim import schedule
from mclab.train.provenance import provenance
from mclab.train.replicas import Pack

Progress = Callable[[int, int], None]


def train_pack(runs: Sequence[RunConfig], *, device: str, progress: Progress | None = None) -> list[Outcome]:
    """Train runs that differ in packable scalars alone; one outcome for each, in order.

    Raises `ValueError` for runs that cannot share a pack, and lets `torch.OutOfMemoryError` through.
    """
    prepare(torch.device(device).type)
    return _Training(runs, torch.device(device), progress or (lambda step, steps: None)).run()


class _Training:
    def __init__(self, runs: Sequence[RunConfig], device: torch.device, progress: Progress) -> None:
        self.began = time.perf_counter()
        self.pack, self.device, self.progress = Pack(runs, device), device, progress
        self.config = runs[0]
        self.seeds = [run.seed for run in runs]
        self.valid = EvalSet(self.config, self.seeds, "valid", self.config.eval.valid, device)
        self.curves: list[list[dict[str, Any]]] = [[] for _ in runs]
        self.steps_to_99: list[int | None] = [None] * len(runs)
        self.stopped_at: list[int | None] = [None] * len(runs)
        self.data = TrainData(self.config, self.seeds, device)
        self.last_valid: list[dict[str, Score]] = []
        self.training_s = 0.0

    def run(self) -> list[Outcome]:
        train, losses = self.config.train, []
        since = time.perf_counter()
        for step, batch in enumerate(self.data.batches(), start=1):
            loss_R, norm_R = self._step(batch, step)
            losses.append(loss_R)
            if step % self.config.eval.every == 0 or step == train.steps:
                mean_loss = torch.stack(losses).mean(0).tolist()
                self.training_s += time.perf_counter() - since
                self._look(step, mean_loss, norm_R.tolist())
                self.progress(step, train.steps)
                since, losses = time.perf_counter(), []
                if not self.pack.alive_R.any():
                    break
        return self._outcomes(step)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.train.precision == "bf16")

    def _step(self, batch: Batch, step: int) -> tuple[Tensor, Tensor]:
        train = self.config.train
        with self._autocast():
            logits = self.pack.model(batch.tokens, batch.positions)
        loss_R = loss_per_replica(logits.float() if logits.dtype == torch.bfloat16 else logits, batch.answers)
        norm_R = self.pack.update(loss_R, step, schedule(step - 1, train.steps, train.warmup))
        return loss_R.detach(), norm_R

    def _look(self, step: int, loss: list[float], norm: list[float]) -> None:
        scores = self.last_valid = self.valid.scores(self.pack.model, self._autocast())
        alive = self.pack.alive_R.tolist()
        for r, run in enumerate(self.pack.runs):
            if self.stopped_at[r] is not None or not alive[r]:
                continue
            lr = run.train.lr * schedule(step - 1, run.train.steps, run.train.warmup)
            valid = {name: {"accuracy": s.accuracy, "loss": s.loss} for name, s in scores[r].items()}
            self.curves[r].append({"step": step, "loss": loss[r], "grad_norm": norm[r], "lr": lr, "valid": valid})
            if self.steps_to_99[r] is None and scores[r][ALL].accuracy >= 0.99:
                self.steps_to_99[r] = step
            worst = min(s.accuracy for name, s in scores[r].items() if name != ALL)
            if run.train.stop_at is not None and worst >= run.train.stop_at:
                self.stopped_at[r] = step
                self.pack.alive_R[r] = False

    def _outcomes(self, last_step: int) -> list[Outcome]:
        test = EvalSet(self.config, self.seeds, "test", self.config.eval.test, self.device)
        test_scores = test.scores(self.pack.model, self._autocast())
        overlap = _overlap(test.fingerprints, self.data.seen)
        diverged = self.pack.diverged_R.tolist()
        wall = time.perf_counter() - self.began
        return [
            self._outcome(r, last_step, diverged[r], self.last_valid[r], test_scores[r], overlap[r], wall)
            for r in range(len(self.seeds))
        ]

    def _outcome(
        self,
        r: int,
        last_step: int,
        diverged: int,
        valid: dict[str, Score],
        test: dict[str, Score],
        overlap: float,
        wall: float,
    ) -> Outcome:
        """Times are a replica's share of its pack's: what one run cost."""
        healthy, replicas = diverged < 0, len(self.seeds)
        fixed, cached = state_floats(self.config)
        tokens = last_step * self.config.train.batch * self.config.task.length
        return Outcome(
            status="done" if healthy else "diverged",
            steps=(self.stopped_at[r] or last_step) if healthy else diverged,
            valid=valid if healthy else {},
            test=test if healthy else {},
            steps_to_99=self.steps_to_99[r],
            overlap=overlap,
            params=self.pack.values_RP.shape[1],
            state_fixed=fixed,
            state_cached=cached,
            tokens_per_s=tokens * replicas / self.training_s,
            wall_s=wall / replicas,
            diverged_step=None if healthy else diverged,
            provenance=provenance(self.device, replicas),
            curve=tuple(self.curves[r]),
        )


def _overlap(test_RN: Tensor, seen_RM: Tensor) -> list[float]:
    """Share of each replica's test sequences that its training has shown."""
    return [torch.isin(test, seen).double().mean().item() for test, seen in zip(test_RN, seen_RM, strict=True)]

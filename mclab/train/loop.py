"""Train a pack: from configs to outcomes. Nothing is written except the checkpoints that `keep` asks for."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from mclab.config.options import Keep
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.params import state_floats
from mclab.config.run import RunConfig
from mclab.tasks import Batch
from mclab.tasks.baseline import without_recall
from mclab.train import checkpoint
from mclab.train.checkpoint import Course, Log
from mclab.train.cpu_settings import prepare
from mclab.train.data import TrainData
from mclab.train.evaluate import EvalSet
from mclab.train.optim import schedule
from mclab.train.pack import Pack
from mclab.train.provenance import provenance
from mclab.train.routing import Routing
from mclab.train.step import Step
from mclab.train.weights import to_bytes

Progress = Callable[[int, int], None]
#: A function of a step and the scores of each replica by slice. It is called after each evaluation on valid except the
#: last, and returns for each replica whether it continues.
OnEvaluation = Callable[[int, Sequence[Mapping[str, Score]]], Sequence[bool]]
#: Seconds between two reports of progress, if there is no evaluation in between.
_REPORT_EVERY = 1.0


def train_pack(
    runs: Sequence[RunConfig],
    *,
    device: str,
    progress: Progress | None = None,
    keep: Keep | None = None,
    on_evaluation: OnEvaluation | None = None,
) -> list[Outcome]:
    """Train runs that differ only in packable scalars, and return one outcome for each, in the same order.

    `progress` is called with (step, steps) at the start, at every evaluation, and once a second. With
    `keep.checkpoints`, runs continue from their checkpoints in that folder and write one every `train.checkpoint_every`
    steps; the results are the same as without. If a checkpoint cannot be read or written, the outcome's provenance says
    so under `remarks`. A replica that `on_evaluation` stops gets the status `pruned`; this does not affect the other
    replicas. Raises `ValueError` for runs that cannot share a pack, and lets `torch.OutOfMemoryError` through.
    """
    prepare(torch.device(device).type)
    shown = progress or (lambda step, steps: None)
    return _Training(runs, torch.device(device), shown, keep or Keep(), on_evaluation).run()


class _Training:
    def __init__(
        self,
        runs: Sequence[RunConfig],
        device: torch.device,
        progress: Progress,
        keep: Keep,
        on_evaluation: OnEvaluation | None,
    ) -> None:
        self.since = self.reported = time.perf_counter()
        self.pack, self.device, self.progress, self.keep = Pack(runs, device), device, progress, keep
        self.on_evaluation = on_evaluation
        self.config = runs[0]
        self.seeds = [run.seed for run in runs]
        self.valid = EvalSet(self.config, self.seeds, "valid", self.config.eval.valid, device)
        self.data = TrainData(self.config, self.seeds, device)
        self.step = Step(self.pack, Routing(self.pack.model, self.config, self.seeds, device), device)
        self.remarks: dict[str, None] = {}
        self.course = self._course()
        self.resumed_at = self.course.step
        self.step.number.fill_(self.resumed_at)
        self.every = min((n for run in runs if (n := run.train.checkpoint_every)), default=None)

    def _course(self) -> Course:
        found = checkpoint.restore(self.keep.checkpoints, self.pack) if self.keep.checkpoints else None
        if isinstance(found, str):
            self.remarks[found] = None
        return found if isinstance(found, Course) else Course([Log() for _ in self.seeds])

    def run(self) -> list[Outcome]:
        course, steps = self.course, self.config.train.steps
        self._replay_evaluations()
        self._report()
        self._spent()
        for step, batch in enumerate(self.data.batches(course.step), start=course.step + 1):
            loss_R, norm_R = self._step(batch, step)
            course.step = step
            course.losses.append(loss_R)
            if step % self.config.eval.every == 0 or step == steps:
                mean_loss = torch.stack(course.losses).mean(0).tolist()
                course.training_s += self._spent()
                self._evaluate(step, mean_loss, norm_R.tolist())
                self._spent()
                self._report()
                course.losses = []
                if not self.pack.alive_R.any():
                    break
            elif time.perf_counter() - self.reported > _REPORT_EVERY:
                self._report()
            if self.every and step % self.every == 0:
                self._save()
        return self._outcomes(course.step)

    def _report(self) -> None:
        self.reported = time.perf_counter()
        self.progress(self.course.step, self.config.train.steps)

    def _spent(self) -> float:
        """Return the seconds since the last call, and add them to the seconds spent on the pack."""
        now = time.perf_counter()
        seconds, self.since = now - self.since, now
        self.course.wall_s += seconds
        return seconds

    def _save(self) -> None:
        """Write a checkpoint. If that fails, training continues, and the provenance gets a remark."""
        if self.keep.checkpoints is None:
            return
        if self.device.type == "cuda":  # work that is still queued counts as training time
            torch.cuda.synchronize(self.device)
        self.course.training_s += self._spent()
        try:
            checkpoint.save(self.keep.checkpoints, self.pack, self.course)
        except OSError as error:
            self.remarks[f"no checkpoint was written to {self.keep.checkpoints}: {error.strerror or error}"] = None
        self._spent()

    def _step(self, batch: Batch, step: int) -> tuple[Tensor, Tensor]:
        return self.step(batch, step)

    def _evaluate(self, step: int, loss: list[float], norm: list[float]) -> None:
        scores = self.valid.scores(self.pack.model, self.step.autocast())
        alive = self.pack.alive_R.tolist()
        for r, (run, log) in enumerate(zip(self.pack.runs, self.course.logs, strict=True)):
            log.valid = scores[r]
            if log.stopped_at is not None or not alive[r]:
                continue
            lr = run.train.lr * schedule(step - 1, run.train.steps, run.train.warmup)
            valid = {name: {"accuracy": s.accuracy, "loss": s.loss} for name, s in scores[r].items()}
            log.curve.append({"step": step, "loss": loss[r], "grad_norm": norm[r], "lr": lr, "valid": valid})
            if log.steps_to_99 is None and scores[r][ALL].accuracy >= 0.99:
                log.steps_to_99 = step
            worst = min(s.accuracy for name, s in scores[r].items() if name != ALL)
            if run.train.stop_at is not None and worst >= run.train.stop_at:
                log.stopped_at = step
                self.pack.alive_R[r] = False
        if self.on_evaluation is not None and step < self.config.train.steps:
            self._prune(step, self.on_evaluation(step, scores))

    def _replay_evaluations(self) -> None:
        """Call `on_evaluation`, whose state is not stored, for all evaluations before a resumed checkpoint."""
        if self.on_evaluation is None:
            return
        for rows in zip_longest(*(log.curve for log in self.course.logs)):
            step = next(row["step"] for row in rows if row)
            unknown = {ALL: Score(float("nan"), float("nan"))}
            scores = [{n: Score(**s) for n, s in row["valid"].items()} if row else unknown for row in rows]
            self.on_evaluation(step, scores)

    def _prune(self, step: int, continues: Sequence[bool]) -> None:
        alive = self.pack.alive_R.tolist()
        for r, log in enumerate(self.course.logs):
            if alive[r] and not continues[r]:
                log.pruned_at = step
                self.pack.alive_R[r] = False

    def _outcomes(self, last_step: int) -> list[Outcome]:
        test = EvalSet(self.config, self.seeds, "test", self.config.eval.test, self.device)
        test_scores = test.scores(self.pack.model, self.step.autocast())
        # For each replica, the share of its test sequences that also occurred in its training.
        each = zip(test.fingerprints, self.data.seen, strict=True)
        overlap = [torch.isin(tested, seen).double().mean().item() for tested, seen in each]
        diverged = self.pack.diverged_R.tolist()
        self._spent()
        return [
            self._outcome(r, last_step, diverged[r], self.course.logs[r], test_scores[r], overlap[r])
            for r in range(len(self.seeds))
        ]

    def _outcome(
        self, r: int, last_step: int, diverged: int, log: Log, test: dict[str, Score], overlap: float
    ) -> Outcome:
        """Return the outcome of replica `r`.

        Times are those of the pack divided by the number of replicas, which is what one run cost.
        """
        healthy, replicas = diverged < 0 and log.pruned_at is None, len(self.seeds)
        fixed, cached = state_floats(self.config)
        return Outcome(
            status="done" if healthy else "diverged" if diverged >= 0 else "pruned",
            steps=(log.stopped_at or last_step) if healthy else diverged if diverged >= 0 else log.pruned_at or 0,
            valid=log.valid if healthy else {},
            test=test if healthy else {},
            steps_to_99=log.steps_to_99,
            overlap=overlap,
            params=self.pack.values_RP.shape[1],
            state_fixed=fixed,
            state_cached=cached,
            tokens_per_s=self.data.tokens * replicas / self.course.training_s,
            wall_s=self.course.wall_s / replicas,
            diverged_step=diverged if diverged >= 0 else None,
            without_recall=without_recall(self.config, self.seeds[r]),
            provenance=self._provenance(replicas),
            curve=tuple(log.curve),
            weights=to_bytes(self.pack, r) if healthy and self.keep.weights else None,
        )

    def _provenance(self, replicas: int) -> dict[str, Any]:
        """The provenance, with the step at which the run was resumed and problems with its checkpoints, if any."""
        found = provenance(self.device, replicas, self.config, self.step.captures, self.step.loss.state)
        if self.resumed_at:
            found["resumed_at"] = self.resumed_at
        if self.remarks:
            found["remarks"] = list(self.remarks)
        return found

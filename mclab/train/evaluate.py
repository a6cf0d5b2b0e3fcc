"""Accuracy and loss per slice on a split's fixed set; replicas see their own seeds' sequences."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.config.outcome import ALL, Score
from mclab.config.run import RunConfig
from mclab.models.lm import LM
from mclab.tasks import NO_ANSWER, TASKS, Batch


def loss_per_replica(logits_RBQV: Tensor, answers_RBQ: Tensor) -> Tensor:
    """Mean cross-entropy over each replica's scored positions, in nats: [R]."""
    return _summed_loss(logits_RBQV, answers_RBQ) / (answers_RBQ != NO_ANSWER).sum((1, 2)).clamp(min=1)


def _summed_loss(logits_RBQV: Tensor, answers_RBQ: Tensor) -> Tensor:
    flat = F.cross_entropy(logits_RBQV.flatten(0, 2), answers_RBQ.flatten(), ignore_index=NO_ANSWER, reduction="none")
    return flat.view(answers_RBQ.shape).sum((1, 2))


class EvalSet:
    """A split's sequences, slice by slice, made once and kept for every look."""

    def __init__(self, run: RunConfig, seeds: Sequence[int], split: str, count: int, device: torch.device) -> None:
        task = TASKS[run.task.name]
        self.chunk = max(1, run.train.batch * 4)
        self.slices: dict[str, Batch] = {
            name: task.batch(run.task.only(name), seeds, split, 0, count, device) for name in run.task.slices
        }

    @property
    def fingerprints(self) -> Tensor:
        """[R, n] over all slices."""
        return torch.cat([batch.fingerprints for batch in self.slices.values()], dim=1)

    @torch.no_grad()
    def scores(self, model: LM, autocast: torch.autocast) -> list[dict[str, Score]]:
        """For each replica a score per slice, and their mean under `ALL`: every slice counts alike."""
        per_slice = {name: self._slice_scores(model, batch, autocast) for name, batch in self.slices.items()}
        replicas = len(next(iter(per_slice.values())))
        return [_with_mean({name: scores[r] for name, scores in per_slice.items()}) for r in range(replicas)]

    def _slice_scores(self, model: LM, batch: Batch, autocast: torch.autocast) -> list[Score]:
        right, loss = torch.zeros(2, batch.tokens.shape[0], dtype=torch.float64, device=batch.tokens.device)
        for at in range(0, batch.tokens.shape[1], self.chunk):
            rows = slice(at, at + self.chunk)
            answers = batch.answers[:, rows]
            with autocast:
                logits = model(batch.tokens[:, rows], batch.positions[:, rows])
            right += ((logits.argmax(-1) == answers) & (answers != NO_ANSWER)).sum((1, 2))
            loss += _summed_loss(logits.float() if logits.dtype == torch.bfloat16 else logits, answers)
        scored = (batch.answers != NO_ANSWER).sum((1, 2))
        return [Score(a, b) for a, b in zip((right / scored).tolist(), (loss / scored).tolist(), strict=True)]


def _with_mean(scores: dict[str, Score]) -> dict[str, Score]:
    accuracy = sum(s.accuracy for s in scores.values()) / len(scores)
    return {ALL: Score(accuracy, sum(s.loss for s in scores.values()) / len(scores)), **scores}

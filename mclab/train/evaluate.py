"""Compute accuracy and loss per slice on the fixed sequences of a split; each replica has those of its own seed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from mclab.caching.post_training import AfterTraining, post_training
from mclab.config.outcome import ALL, Score
from mclab.config.run import RunConfig
from mclab.config.task import TaskConfig
from mclab.models.lm import LM
from mclab.tasks import NO_ANSWER, TASKS, Batch
from mclab.tasks.scoring import counts, values_found

#: A chunk has the tokens of this many training batches, and at most this many logits, since long sequences may have
#: more scored positions.
CHUNK, CHUNK_LOGITS = 4, 2**27
#: Slices of up to this many tokens are kept in memory; those of larger slices are made anew, chunk by chunk.
KEPT = 2**24


def as_scored(model: LM, run: RunConfig, split: str) -> AbstractContextManager[None]:
    """Within the block, put `model` into the state in which it is scored on `split`.

    That is the trained model; on test, with the cache that `eval.post_training` asks for, if any.
    """
    if split != "test" or run.eval.post_training is None:
        return nullcontext()
    return post_training(model, AfterTraining(run.cached_after, run.eval.post_training, run.eval.post_mix))


def loss_per_replica(logits_RBQV: Tensor, answers_RBQ: Tensor) -> Tensor:
    """Return [R]: the mean cross-entropy over the scored positions of each replica, in nats."""
    return _summed_loss(logits_RBQV, answers_RBQ) / (answers_RBQ != NO_ANSWER).sum((1, 2)).clamp(min=1)


def _summed_loss(logits_RBQV: Tensor, answers_RBQ: Tensor) -> Tensor:
    flat = F.cross_entropy(logits_RBQV.flatten(0, 2), answers_RBQ.flatten(), ignore_index=NO_ANSWER, reduction="none")
    return flat.view(answers_RBQ.shape).sum((1, 2))


class EvalSet:
    """The sequences of a split, slice by slice: the task's own slices, and on test also those that `eval.task` adds."""

    def __init__(self, run: RunConfig, seeds: Sequence[int], split: str, count: int, device: torch.device) -> None:
        self.run, self.split, self.own = run, split, run.task.slices
        self.tokens = CHUNK * run.train.batch * run.task.length
        tasks = run.tested if split == "test" else {name: run.task.only(name) for name in self.own}
        self.slices = {name: _Slice(task, seeds, split, count, device) for name, task in tasks.items()}

    @property
    def fingerprints(self) -> Tensor:
        """Return [R, n]: the fingerprints of the sequences of all slices.

        A fingerprint equals that of a training sequence if both ask the same at the same positions. For a causal model,
        a longer sequence that only continues after its last question is the same test.
        """
        chunks = (rows for part in self.slices.values() for rows in part.chunks(self.tokens))
        return torch.cat([rows.fingerprints for rows in chunks], dim=1)

    @torch.no_grad()
    def scores(self, model: LM, autocast: AbstractContextManager[object]) -> list[dict[str, Score]]:
        """Return for each replica the score on every slice, and under `ALL` the mean over the task's own slices."""
        with as_scored(model, self.run, self.split):
            per_slice = {name: self._slice_scores(model, part, autocast) for name, part in self.slices.items()}
        replicas = len(per_slice[self.own[0]])
        return [self._with_mean({name: scores[r] for name, scores in per_slice.items()}) for r in range(replicas)]

    def _slice_scores(self, model: LM, part: "_Slice", autocast: AbstractContextManager[object]) -> list[Score]:
        loss_R = torch.zeros(part.replicas, dtype=torch.float64, device=part.device)
        counts_6R = torch.zeros(6, part.replicas, dtype=torch.int64, device=part.device)
        found_R = torch.zeros(part.replicas, dtype=torch.int64, device=part.device)
        answer, value = part.task.answer_tokens, part.task.value_tokens
        several = answer > value and self.split == "test"
        for rows in part.chunks(self.tokens):
            with autocast:
                logits = model(rows.tokens, rows.positions)
            loss_R += _summed_loss(logits.float() if logits.dtype == torch.bfloat16 else logits, rows.answers)
            counts_6R += counts(logits.argmax(-1), rows.answers, answer, value)
            if several:
                found_R += values_found(_greedy(model, rows, autocast), rows.answers, answer, value)
        right, answers, right_values, values, right_tokens, tokens = counts_6R.double()
        shares = [right / answers, loss_R / tokens, right_tokens / tokens]
        shares += [right_values / values] * (answer > value) + [found_R / values] * several
        return [Score(*each) for each in torch.stack(shares, dim=1).tolist()]

    def _with_mean(self, scores: Mapping[str, Score]) -> dict[str, Score]:
        own = [scores[name] for name in self.own]
        single = [s.value_accuracy for s in own if s.value_accuracy is not None]
        found = [s.values_found for s in own if s.values_found is not None]
        whole = Score(
            accuracy=_mean([s.accuracy for s in own]),
            loss=_mean([s.loss for s in own]),
            token_accuracy=_mean([s.token_accuracy or 0.0 for s in own]),
            value_accuracy=_mean(single) if single else None,
            values_found=_mean(found) if found else None,
        )
        return {ALL: whole, **scores}


def _greedy(model: LM, rows: Batch, autocast: AbstractContextManager[object]) -> Tensor:
    """Return [R, B, Q] int64: the most likely token at each scored position; answers continue from the model's own
    tokens.

    There is one forward pass per position, over whole sequences. A causal model allows that: what follows a position
    does not change its logits.
    """
    tokens, chosen = rows.tokens.clone(), []
    for place in rows.positions.unbind(-1):
        with autocast:
            chosen.append(model(tokens, place.unsqueeze(-1)).argmax(-1))
        after = (place + 1).unsqueeze(-1)
        within = after < tokens.shape[-1]  # the last token is wanted but is never an input
        at = torch.where(within, after, 0)
        tokens.scatter_(-1, at, torch.where(within, chosen[-1], tokens.gather(-1, at)))
    return torch.cat(chosen, -1)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class _Slice:
    """One slice: its task, and its sequences in chunks."""

    def __init__(self, task: TaskConfig, seeds: Sequence[int], split: str, count: int, device: torch.device) -> None:
        self.task, self.device, self.replicas = task, device, len(seeds)
        self._seeds, self._split, self._count = seeds, split, count
        self._kept: Batch | None = None
        if len(seeds) * count * task.length <= KEPT:
            self._kept = self._rows(0, count)

    def chunks(self, tokens: int) -> Iterator[Batch]:
        """Yield the sequences in chunks of about `tokens` tokens per replica, smaller if many positions are scored."""
        asked = self._rows(0, 1).answers.shape[-1]
        most = CHUNK_LOGITS // (self.replicas * asked * self.task.vocab)
        rows = max(1, min(tokens // self.task.length, most))
        for at in range(0, self._count, rows):
            yield self._rows(at, min(rows, self._count - at))

    def _rows(self, first: int, count: int) -> Batch:
        if self._kept is not None:
            return Batch(*(field[:, first : first + count] for field in self._kept))
        make = TASKS[self.task.name].batch
        return make(self.task, self._seeds, self._split, first, count, self.device)

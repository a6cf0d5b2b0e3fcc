"""Run a trained model on sequences of a task, and return its answers and each gate's weights at the scored positions.

Shapes: B batch, T time, H heads, N segments, Q scored positions; one replica.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mclab.caching.record_weights import Recorded, recording
from mclab.config.model import MemoryMixer
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.config.task import TaskConfig
from mclab.models.lm import LM
from mclab.report.characters import Strip
from mclab.tasks import NO_ANSWER, TASKS, Batch
from mclab.train.evaluate import as_scored
from mclab.verbs.sample.needed import needed, strip
from mclab.verbs.sample.task import rows_of

#: The most tokens in one forward pass of several sequences. The gates' weights for all of them are in memory at once.
TOKENS = 2**14
#: Roles of the tokens after which an answer is wanted. On train, task `ar` also scores all other tokens (`loss: all`).
_ASKED = ("query", "answer")


class Head(NamedTuple):
    """A head of a layer: the numbers of both, counted from 0."""

    layer: int
    head: int


class Query(NamedTuple):
    """One scored position: the wanted token, the predicted token, and where the sequence contains the wanted one."""

    at: int
    wanted: int
    predicted: int
    needs: tuple[int, ...]
    """The positions of the wanted value token after the asked key; empty if the sequence does not contain it."""
    strips: Mapping[Head, Strip]
    """{head: the gate's weights at this position}; empty without a gate."""

    @property
    def right(self) -> bool:
        """True if the predicted token is the wanted one."""
        return self.wanted == self.predicted


@dataclass(frozen=True)
class Sample:
    """A sequence as `rows_of` returns it, and its answers. Each answer has one query for each of its tokens."""

    row: Mapping[str, Any]
    answers: tuple[tuple[Query, ...], ...]

    @property
    def queries(self) -> list[Query]:
        """All scored positions, from left to right."""
        return sorted((query for answer in self.answers for query in answer), key=lambda query: query.at)


@dataclass(frozen=True)
class Predicted:
    """Sequences of a task with a model's answers.

    `why_no_gate` says why there are no gate weights; `None` if there are.
    """

    run: RunConfig
    task: TaskConfig
    samples: tuple[Sample, ...]
    why_no_gate: str | None

    @property
    def mixer(self) -> MemoryMixer:
        """The mixer whose gates are shown. Use it only if `why_no_gate` is `None`."""
        assert isinstance(self.run.model.mixer, MemoryMixer)
        return self.run.model.mixer

    @property
    def heads(self) -> list[Head]:
        """The heads that are shown, sorted by layer and head."""
        return sorted({head for sample in self.samples for query in sample.queries for head in query.strips})

    @property
    def accuracy(self) -> float:
        """The share of whole answers that are right."""
        answers = [all(query.right for query in answer) for sample in self.samples for answer in sample.answers]
        return sum(answers) / len(answers)

    def known(self, *heads: Head) -> list[Strip]:
        """Return the strips of `heads` for the queries whose answer is in a memory that the query sees."""
        return [
            query.strips[head]
            for sample in self.samples
            for query in sample.queries
            for head in heads
            if head in query.strips and query.strips[head].held
        ]


def predicted(
    model: LM, run: RunConfig, task: TaskConfig, split: str, count: int, *, layer: int | None, head: int | None
) -> Predicted:
    """Return the first `count` sequences of `split` for the run's seed, with the model's answers and gate weights.

    `layer` and `head` choose the gates that are kept; `None` keeps all. Raises `ConfigError` for a layer or head
    without a gate, for an unknown split, and for a task that is too small for the split.
    """
    reason = _why_no_gate(run)
    keep = [] if reason else _kept(run, layer, head)
    try:
        rows = list(rows_of(run.model_copy(update={"task": task}), run.seed, split, count))
        batch = TASKS[task.name].batch(task, [run.seed], split, 0, count, "cpu")
    except ValueError as error:
        raise ConfigError(str(error)) from None
    per_pass = max(1, TOKENS // task.length)
    samples: list[Sample] = []
    with as_scored(model, run, split):
        for start in range(0, count, per_pass):
            part = slice(start, start + per_pass)
            samples += _samples(model, run, task, rows[part], Batch(*(field[:, part] for field in batch)), keep)
    return Predicted(run, task, tuple(samples), reason)


def _why_no_gate(run: RunConfig) -> str | None:
    """Return why the run's model has no gate; `None` if it has one.

    Only `model.mixer` can have a gate: a memory that `model.pattern` names has no cache.
    """
    mixer = run.model.mixer
    if not isinstance(mixer, MemoryMixer):
        return f"the mixer {mixer.name} has no gate"
    if mixer.aggregate == "none":
        if run.eval.post_training is not None:
            return "no gate: a cache that is added after training averages the memories that a token sees"
        return "with aggregate none there is one memory and no gate"
    if mixer.read_gate == "none" and mixer.aggregate != "ssc":
        return "no gate: all memories that a token sees have equal weight"
    return None


def _kept(run: RunConfig, layer: int | None, head: int | None) -> list[Head]:
    gated, every = _gated(run), range(run.model.heads)
    for name, given, known in (("layer", layer, gated), ("head", head, every)):
        if given is not None and given not in known:
            raise ConfigError(f"--{name}: {name} {given} has no gate; give one of {', '.join(map(str, known))}")
    return [Head(a, b) for a in gated for b in every if layer in (None, a) and head in (None, b)]


def _gated(run: RunConfig) -> list[int]:
    """Return the numbers of the layers whose mixer is `model.mixer`; a pattern may have other mixers between them."""
    return [place for place, mixer in enumerate(run.model.mixers) if mixer == run.model.mixer]


def _watched(run: RunConfig) -> list[int]:
    """Return the numbers of the layers that `recording` records, in its order: all layers with a memory."""
    return [place for place, mixer in enumerate(run.model.mixers) if isinstance(mixer, MemoryMixer)]


def _samples(
    model: LM, run: RunConfig, task: TaskConfig, rows: Sequence[Mapping[str, Any]], batch: Batch, keep: Sequence[Head]
) -> Iterator[Sample]:
    # the precision with which the run was tested
    bf16 = torch.autocast("cpu", torch.bfloat16, enabled=run.train.precision == "bf16")
    with torch.inference_mode(), bf16, recording(model) as seen:
        said_BQ = model(batch.tokens, batch.positions)[0].argmax(-1)
    layers = dict(zip(_watched(run), seen, strict=False))
    gates = {head: _weights(layers[head.layer], head.head, batch.positions[0]).tolist() for head in keep}
    for b, row in enumerate(rows):
        asked = zip(batch.positions[0, b].tolist(), batch.answers[0, b].tolist(), said_BQ[b].tolist(), strict=True)
        strips = [{head: weights[b][q] for head, weights in gates.items()} for q in range(said_BQ.shape[1])]
        scored = [
            (*each, strip)
            for each, strip in zip(asked, strips, strict=True)
            if each[1] != NO_ANSWER and row["roles"][each[0]] in _ASKED
        ]
        size = task.answer_tokens
        groups = [scored[at : at + size] for at in range(0, len(scored), size)]
        yield Sample(row, tuple(_answer(run, row, group) for group in groups))


def _weights(seen: Recorded, head: int, positions_BQ: Tensor) -> Tensor:
    """Return [B, Q, N]: the weights gamma of one head at the scored positions."""
    weights_BTN: Tensor = seen.weights.unflatten(0, (-1, seen.heads))[:, head]
    return weights_BTN.gather(1, positions_BQ.unsqueeze(-1).expand(-1, -1, weights_BTN.shape[-1]))


def _answer(
    run: RunConfig, row: Mapping[str, Any], group: Sequence[tuple[int, int, int, Mapping[Head, Sequence[float]]]]
) -> tuple[Query, ...]:
    needs = needed(row["tokens"], row["roles"], [(at, wanted) for at, wanted, *_ in group])
    place = partial(_strip, run, len(row["tokens"]))
    return tuple(
        Query(at, wanted, said, needs[at], {head: place(each, at, needs[at]) for head, each in weights.items()})
        for at, wanted, said, weights in group
    )


def _strip(run: RunConfig, length: int, weights: Sequence[float], at: int, needs: Sequence[int]) -> Strip:
    assert isinstance(run.model.mixer, MemoryMixer)
    return strip(run.model.mixer, length, weights, at, needs)

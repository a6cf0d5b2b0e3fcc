"""The contract of every synthetic task: the content of a batch, and the functions that a task must have."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

#: The value in `Batch.answers` where nothing is scored (the `ignore_index` of `cross_entropy`).
NO_ANSWER = -100
#: The value in `Batch.slices` for a sequence that belongs to no slice, as on train if training ignores the difficulty.
NO_SLICE = -1


class Role(IntEnum):
    """The role of a token in its sequence, for printing a batch."""

    FILLER = 0
    KEY = 1
    VALUE = 2
    QUERY = 3
    MARK = 4
    """A token that shows where a key, a value or a question begins, or where the pairs end."""
    ANSWER = 5
    """A token of an answer that the model reads before it predicts the next token of that answer."""


class Batch(NamedTuple):
    """The same B sample numbers for each of R seeds; row [r, b] depends only on seed r and on the number of its sample.

    At a scored position the model has read the query, or the answer's tokens so far, and must predict the answer's next
    token. The last token of a sequence's last answer is never an input of the model. Each group of
    `config.answer_tokens` adjacent positions is one answer (on train, `loss: all` of ar also scores positions that
    belong to no answer).
    """

    tokens: Tensor
    """[R, B, T] int64: the input of the model."""
    positions: Tensor
    """[R, B, Q] int64: the scored positions, padded with 0."""
    answers: Tensor
    """[R, B, Q] int64: the token that is wanted at each scored position, padded with `NO_ANSWER`."""
    slices: Tensor
    """[R, B] int64: the index of the sample's slice in `config.slices`, or `NO_SLICE`."""
    fingerprints: Tensor
    """[R, B] int64: a hash of the sequence without its filler, seed and split. Repeats have equal hashes."""


class Task(Protocol):
    """A task: three pure functions of its config. Every module that defines these functions is a task.

    `config` is the task's own model from `mclab.config.task`, so its type differs from task to task.
    """

    def batch(
        self, config: Any, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
    ) -> Batch:
        """Return samples `start` to `start + count - 1` of `split` for each seed: R = len(seeds), B = count.

        The same sample has the same bits on every device and in every batch. Raises `ValueError` for a split that is
        not in `SPLITS`, for an empty or negative range, and for a task too small to have samples of its own in each
        split.
        """
        ...

    def roles(self, config: Any, batch: Batch) -> Tensor:
        """Return [R, B, T] int64: the `Role` of every token."""
        ...

    def token_name(self, config: Any, token: int) -> str:
        """Return the name of a token for people: without spaces, and different for every token of the vocabulary."""
        ...

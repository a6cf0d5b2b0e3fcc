"""The contract that every synthetic task keeps: what a batch holds, and which functions a task offers."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

#: The entry of `Batch.answers` where nothing is scored (the `ignore_index` of `cross_entropy`).
NO_ANSWER = -100
#: The entry of `Batch.slices` of a sequence without a slice: in training, which ignores the difficulty axis.
NO_SLICE = -1


class Role(IntEnum):
    """What a token of a sequence is, so that a batch can be printed for a person."""

    FILLER = 0
    KEY = 1
    VALUE = 2
    QUERY = 3
    MARK = 4
    """What shows where a key, a value or a question begins, or where the pairs end."""
    ANSWER = 5
    """A token of an answer that is fed, so that the next one can be wanted."""


class Batch(NamedTuple):
    """Samples of R seeds side by side; row [r, b] depends on seed r and its sample's index alone.

    A scored position is where the model has read the query, or an answer's tokens so far, and must name the next
    token of the answer; the last one is never in the input. `config.answer_tokens` adjacent positions are
    one answer (on train, `loss: all` of ar scores what is no answer too).
    """

    tokens: Tensor
    """[R, B, T] int64: what the model reads."""
    positions: Tensor
    """[R, B, Q] int64: where it is scored, padded with 0."""
    answers: Tensor
    """[R, B, Q] int64: the token wanted there, padded with `NO_ANSWER`."""
    slices: Tensor
    """[R, B] int64: the sample's place in `config.slices`, the values of the difficulty axis; `NO_SLICE` for none."""
    fingerprints: Tensor
    """[R, B] int64: a hash of what makes the sequence itself (not its filler, seed or split): equal means a repeat."""


class Task(Protocol):
    """A task: three pure functions of its config. A module that defines them is one.

    `config` is the task's own model out of `mclab.config.task`, so its type differs from task to task.
    """

    def batch(
        self, config: Any, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
    ) -> Batch:
        """Samples `start` to `start + count - 1` of `split`, for each seed: R = len(seeds), B = count.

        The same sample has the same bits on every device and in every batch. Raises `ValueError` for a split that
        is not in `SPLITS`, for an empty or negative range, and for a task too small to have samples of its own in
        each split.
        """
        ...

    def roles(self, config: Any, batch: Batch) -> Tensor:
        """[R, B, T] int64: the `Role` of every token."""
        ...

    def token_name(self, config: Any, token: int) -> str:
        """A token of the vocabulary as a person reads it: without spaces, different for each."""
        ...

"""Count what is right: whole answers, single values, tokens."""

import torch
from torch import Tensor

from mclab.tasks.base import NO_ANSWER


def counts(chosen_RBQ: Tensor, answers_RBQ: Tensor, answer_tokens: int, value_tokens: int) -> Tensor:
    """Return [6, R]: the numbers of right answers, answers, right values, values, right tokens and tokens.

    An answer is `answer_tokens` adjacent positions on the axis Q, a value `value_tokens` of them. An answer or a value
    is right if all its tokens are right. Padded positions are not counted.
    """
    scored = answers_RBQ != NO_ANSWER
    right = (chosen_RBQ == answers_RBQ) & scored
    found = [each for size in (answer_tokens, value_tokens) for each in _whole(right, scored, size)]
    return torch.stack([each.sum((1, 2)) for each in (*found, right, scored)])


def values_found(chosen_RBQ: Tensor, answers_RBQ: Tensor, answer_tokens: int, value_tokens: int) -> Tensor:
    """Return [R]: how many of the wanted values are among the values that the model predicted for the same answer.

    Their order has no effect. No position may be padded.
    """
    size = (-1, answer_tokens // value_tokens, value_tokens)
    chosen, wanted = chosen_RBQ.unflatten(-1, size).unsqueeze(-3), answers_RBQ.unflatten(-1, size).unsqueeze(-2)
    equal: Tensor = chosen == wanted
    return equal.all(-1).any(-1).sum((1, 2, 3))


def _whole(right: Tensor, scored: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return for each group of `size` adjacent positions whether all its scored positions are right, and whether it has
    any.

    If it has none, the first is `False` too.
    """
    assert scored.shape[-1] % size == 0
    asked = scored.unflatten(-1, (-1, size)).any(-1)
    return (right | ~scored).unflatten(-1, (-1, size)).all(-1) & asked, asked

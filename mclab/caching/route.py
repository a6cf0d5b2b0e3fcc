"""Routes: how sparse selective caching learns which memories to choose (docs/equations.md#route).

Every route reads the k kept memories of highest context score and the online memory. Routes differ in what else a
training step reads, and in the gradient of the scores. Shapes as in caching/gate.py; scores and weights of a
token have J columns, one for each memory that it reads, and the last column is that of the online memory.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from mclab.caching.activation import softmax
from mclab.caching.gate_output import GateOutput
from mclab.memories import sparse_read
from mclab.memories.base import Written


def hard(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Return the read of the chosen memories.

    The weights of the chosen memories have a gradient, the selection has none.
    """
    columns_GTJ = _selected(gated)
    return written.read_chosen(q_GTK, _sharp(gated, columns_GTJ).to(q_GTK.dtype), columns_GTJ)


def straight_through(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Return the output of `hard`, where the scores get the gradient of the weights `soft` of all memories.

    If gradients are wanted, a token reads all memories that it sees; those that were not chosen have weight zero.
    """
    if not torch.is_grad_enabled():
        return hard(written, q_GTK, gated)
    columns_GTJ = _selected(gated)
    sharp_GTJ = _sharp(gated, columns_GTJ).to(q_GTK.dtype)
    sharp_GTN = sparse_read.spread(sharp_GTJ, columns_GTJ, gated.visible_TN.shape[1])
    return written.read(q_GTK, _with_soft_gradient(gated, sharp_GTN, soft(gated)))


def annealed(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Early in training, return the output of `grm` with the gradient of `straight_through`; later, `explore`."""
    if gated.step is None or not gated.step.early:
        return explore(written, q_GTK, gated)
    weights_GTN = gated.weights()
    if weights_GTN is None:
        weights_GTN = gated.visible_TN.to(q_GTK.dtype)
    return written.read(q_GTK, _with_soft_gradient(gated, weights_GTN, soft(gated)))


def explore(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Return the output of `hard`, where the scores get the gradient of `straight_through` on average, at a lower cost.

    Instead of all unchosen memories, only one is read. It is drawn for each token and head and represents all of them:
    its gradient is multiplied by their number. Outside of a training step nothing is drawn, and this is
    `straight_through`.
    """
    if gated.step is None or gated.step.draws_GT is None:
        return straight_through(written, q_GTK, gated)
    columns_GTJ = _selected(gated)
    drawn_GT1, rest_GT1 = draw(gated.step.draws_GT, gated.past_TN, columns_GTJ)
    sharp_GTJ = _sharp(gated, columns_GTJ).to(q_GTK.dtype)
    soft_GTN = soft(gated)
    soft_GTJ = soft_GTN.gather(-1, columns_GTJ).where(_counts(columns_GTJ), 0.0)
    one_GT1 = rest_GT1 * soft_GTN.gather(-1, drawn_GT1)
    columns_GTJ = torch.cat((drawn_GT1, columns_GTJ), -1)
    sharp_GTJ = torch.cat((torch.zeros_like(one_GT1), sharp_GTJ), -1)
    return written.read_chosen(
        q_GTK, _with_soft_gradient(gated, sharp_GTJ, torch.cat((one_GT1, soft_GTJ), -1)), columns_GTJ
    )


def soft(gated: GateOutput) -> Tensor:
    """Return [G, T, N]: the weights that would result if no memory were left out, as far as the scores decide them.

    With `gate: context` the logits are the scores. With `gate: none` the weights are the softmax of the scores over the
    kept memories. With another gate the scores are added to its logits. Only the scores get a gradient from here.
    """
    scores, logits = gated.scores_GTN, gated.logits_GTN
    assert scores is not None
    if logits is scores:
        return gated.activation(scores, gated.visible_TN)
    if logits is not None:
        return gated.activation(logits.detach() + scores, gated.visible_TN)
    past_TN = gated.past_TN  # a token without a past has no kept memory that could have a weight
    return softmax(scores, past_TN | ~past_TN.any(-1, keepdim=True)).where(past_TN, 0.0)


def select(scores_GTN: Tensor, past_TN: Tensor, own_TN: Tensor, k: int) -> Tensor:
    """Return for each token the columns of the k highest past scores and, last, its own column: [G, T, J].

    A token's own column is that of its online memory. It is repeated if the past has fewer than k columns. J is k + 1,
    or the number of columns if that is smaller.
    """
    own_GT1 = own_TN.byte().argmax(-1, keepdim=True).expand(scores_GTN.shape[0], -1, -1)
    masked = scores_GTN.masked_fill(~past_TN, -torch.inf)
    best_GTk = masked.topk(min(k, masked.shape[-1] - 1), dim=-1).indices
    past_GTk = past_TN.expand_as(masked).gather(-1, best_GTk)
    return torch.cat((torch.where(past_GTk, best_GTk, own_GT1), own_GT1), -1)


def draw(draws_GT: Tensor, past_TN: Tensor, columns_GTJ: Tensor) -> tuple[Tensor, Tensor]:
    """Return one drawn column for each token, and the number of columns from which it was drawn, each [G, T, 1].

    It is drawn from the columns of the token's past that are not in `columns_GTJ`: number ⌊draw · count / 2^31⌋ of them
    in their order. If there are none, it is the token's own column.
    """
    named_GTJ = torch.ones_like(columns_GTJ, dtype=torch.bool)
    free_GTN = past_TN.expand(columns_GTJ.shape[0], -1, -1).scatter(-1, columns_GTJ, ~named_GTJ)
    upto_GTN = free_GTN.cumsum(-1, dtype=torch.int32)
    count_GT1 = upto_GTN[..., -1:]
    place_GT1 = draws_GT.unsqueeze(-1).long() * count_GT1 >> 31
    drawn_GT1 = (upto_GTN > place_GT1).byte().argmax(-1, keepdim=True)
    return torch.where(count_GT1 > 0, drawn_GT1, columns_GTJ[..., -1:]), count_GT1


def _selected(gated: GateOutput) -> Tensor:
    assert gated.scores_GTN is not None
    return select(gated.scores_GTN.detach(), gated.past_TN, gated.own_TN, gated.k)


def _counts(columns_GTJ: Tensor) -> Tensor:
    """Return [G, T, J]: True if a column is to be read, False if it only repeats the token's own column."""
    counts_GTJ = columns_GTJ != columns_GTJ[..., -1:]
    counts_GTJ[..., -1] = True
    return counts_GTJ


def _sharp(gated: GateOutput, columns_GTJ: Tensor) -> Tensor:
    """Return [G, T, J]: gamma of the chosen columns, zero for a column that only repeats the token's own.

    Without `renormalise` the softmax is over all memories that t sees.
    """
    chosen_GTJ = _counts(columns_GTJ)
    if gated.logits_GTN is None:
        return chosen_GTJ
    if gated.renormalise:
        return gated.activation(gated.logits_GTN.gather(-1, columns_GTJ), chosen_GTJ)
    return gated.activation(gated.logits_GTN, gated.visible_TN).gather(-1, columns_GTJ).masked_fill(~chosen_GTJ, 0.0)


def _with_soft_gradient(gated: GateOutput, sharp: Tensor, soft: Tensor) -> Tensor:
    """Return values equal to `sharp`, to the last bit, where the scores get the gradient of `soft`.

    The logits of a gate other than `context` keep the gradient of `sharp`.
    """
    values = sharp.detach() if gated.logits_GTN is gated.scores_GTN else sharp
    return values + (soft - soft.detach())


#: Routes by their name under `model.mixer.route`.
ROUTES: dict[str, Callable[[Written, Tensor, GateOutput], Tensor]] = {
    "annealed": annealed,
    "explore": explore,
    "straight_through": straight_through,
    "hard": hard,
}

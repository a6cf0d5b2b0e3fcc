"""The language model: causality, replicas that never meet, gradients everywhere, where parameters start."""

import pytest
import torch

from mclab.config.params import parameters
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from mclab.tasks import TASKS
from tests.models.cases import CASES, OWN, OWN_CASES, batch, built, config


@pytest.mark.parametrize("run", CASES)
def test_parameter_arithmetic_and_finite_gradients_everywhere(run):
    model = built(run)
    assert parameters(run) == sum(p[0].numel() for p in model.parameters())
    logits = model(*batch(run))
    loss = torch.logsumexp(logits, -1).square().sum() + logits[..., 0].sum()
    grads = torch.autograd.grad(loss, list(model.parameters()))
    for (name, _), grad in zip(model.named_parameters(), grads, strict=True):
        assert torch.isfinite(grad).all(), name
        assert grad.abs().sum() > 0, f"{name} gets no gradient"


@pytest.mark.parametrize("run", [case for case in (*CASES, *OWN_CASES) if case.values[0].model.position != "learned"])
def test_twice_the_length_that_the_model_was_made_for(run):
    """Finite, and its first half is what the shorter sequence gives."""
    model, longer = built(run), run.task.model_copy(update={"length": 2 * run.task.length})
    tokens = TASKS[run.task.name].batch(longer, [0, 1], "train", 0, 3, "cpu").tokens
    everywhere = torch.arange(tokens.shape[2]).expand(*tokens.shape[:2], -1)
    whole, half = model(tokens, everywhere), run.task.length
    assert torch.isfinite(whole).all()
    torch.testing.assert_close(
        whole[:, :, :half], model(tokens[:, :, :half], everywhere[:, :, :half]), atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("run", CASES)
def test_causal(run):
    """Changing the token at t changes no logit before t."""
    model, (tokens, _) = built(run), batch(run)
    everywhere = torch.arange(tokens.shape[2]).expand(*tokens.shape[:2], -1)
    before = model(tokens, everywhere)
    for t in (0, 7, 8, 19):
        changed = tokens.clone()
        changed[:, :, t] = (changed[:, :, t] + 1) % run.task.vocab
        after = model(changed, everywhere)
        torch.testing.assert_close(after[:, :, :t], before[:, :, :t], atol=1e-9, rtol=0)
        assert not torch.equal(after[:, :, t], before[:, :, t])


def test_head_at_scored_positions_equals_full_head():
    run = config("memory", {})
    model, (tokens, positions) = built(run), batch(run)
    everywhere = torch.arange(tokens.shape[2]).expand(*tokens.shape[:2], -1)
    full = model(tokens, everywhere)
    picked = full.gather(2, positions[..., None].expand(-1, -1, -1, full.shape[-1]))
    torch.testing.assert_close(model(tokens, positions), picked, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    "run",
    [
        config("memory", {}),
        config("memory", {"memory": "titans", "hybrid": "mal", "window": 3}),
        config("memory", {"memory": "titans", "hybrid": "mag", "window": 3}),
        config("attention", {"rotary": True, "taps": 0}),
        config("conv", {}),
        config("module", OWN),
    ],
)
def test_replicas_never_meet(run):
    """A replica's logits are those of a pack of its own; NaN in one replica stays there."""
    both, (tokens, positions) = built(run), batch(run)
    alone = LM(run, 1)
    initialise(alone, [1])
    expected = alone.double()(tokens[1:], positions[1:])
    torch.testing.assert_close(both(tokens, positions)[1:], expected, atol=1e-12, rtol=0)
    for values in both.parameters():
        values.data[0] = torch.nan
    torch.testing.assert_close(both(tokens, positions)[1:], expected, atol=1e-12, rtol=0)


def test_a_parameter_starts_from_its_own_name_alone():
    """Adding an output gate leaves every other parameter as it was."""
    plain, gated = built(config("memory", {})), built(config("memory", {"out_gate": True}))
    others = dict(gated.named_parameters())
    for name, values in plain.named_parameters():
        assert torch.equal(values, others.pop(name)), name
    assert all("out_gate" in name for name in others)


def test_seeds_start_differently_and_again_alike():
    run = config("memory", {})
    one, two = built(run), built(run)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.embedding[0], one.embedding[1])

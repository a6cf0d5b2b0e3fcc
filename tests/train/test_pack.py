"""A pack is nothing but its runs side by side."""

import itertools

import pytest
import torch

from mclab.config.run import RunConfig
from mclab.tasks import TASKS
from mclab.train.evaluate import loss_per_replica
from mclab.train.optim import AdamW, schedule
from mclab.train.pack import Pack
from tests.tolerances import PACK

STEPS = 20


def run_config(seed=0, lr=1e-2, **train):
    return RunConfig.model_validate(
        {
            "seed": seed,
            "task": {"vocab": 32, "length": 16, "pairs": [2, 4]},
            "model": {"dim": 8, "mixer": {"segment": 4}},
            "train": {"steps": STEPS, "batch": 8, "lr": lr, "precision": "fp64", **train},
        }
    )


EIGHT = [run_config(seed, lr) for seed, lr in itertools.product([0, 1], [1e-3, 3e-3, 1e-2, 3e-2])]


def train(runs, steps=STEPS):
    """The parameters [R, P] and the losses [steps, R]."""
    pack, losses = Pack(runs, torch.device("cpu")), []
    seeds = [run.seed for run in runs]
    for step in range(steps):
        data = TASKS["mqar"].batch(runs[0].task, seeds, "train", step * 8, 8, "cpu")
        loss = loss_per_replica(pack.model(data.tokens, data.positions), data.answers)
        pack.update(loss, step + 1, schedule(step, STEPS, runs[0].train.warmup))
        losses.append(loss.detach())
    return pack, torch.stack(losses)


@pytest.fixture(scope="module")
def alone():
    return [train([run]) for run in EIGHT]


@pytest.mark.parametrize("order", [range(8), range(7, -1, -1), [3, 0, 6, 1, 7, 2, 5, 4]], ids=str)
def test_a_pack_of_eight_is_eight_runs(alone, order):
    pack, losses = train([EIGHT[i] for i in order])
    for place, i in enumerate(order):
        single, single_losses = alone[i]
        torch.testing.assert_close(pack.values_RP[place], single.values_RP[0], atol=PACK, rtol=0)
        torch.testing.assert_close(losses[:, place], single_losses[:, 0], atol=PACK, rtol=0)
    assert (alone[0][0].values_RP - alone[1][0].values_RP).abs().max() > 1e-3, "the runs differ to begin with"


@pytest.mark.parametrize("lr", [1e3, 1e30], ids=["huge", "overflowing"])
def test_a_diverging_member_changes_nothing_for_the_others(alone, lr):
    pack, _ = train([*EIGHT[:3], run_config(5, lr), *EIGHT[3:]])
    others = [0, 1, 2, 4, 5, 6, 7, 8]
    for place, (single, _) in zip(others, alone, strict=True):
        torch.testing.assert_close(pack.values_RP[place], single.values_RP[0], atol=PACK, rtol=0)
    assert (pack.diverged_R[others] == -1).all()


def test_a_diverged_member_is_frozen_with_finite_parameters_and_its_step():
    pack, losses = train([run_config(0), run_config(1, 1e30)])
    (at,) = pack.diverged_R[1:].tolist()
    assert 2 <= at <= STEPS
    assert not pack.alive_R[1]
    assert torch.isfinite(losses[: at - 1, 1]).all()
    assert torch.isfinite(pack.values_RP).all()


def test_packable_scalars_act_per_replica():
    """Weight decay and clipping of one member are not another's."""
    runs = [run_config(), run_config(weight_decay=0.5), run_config(clip=1e-3)]
    pack, _ = train(runs)
    for place, run in enumerate(runs):
        single, _ = train([run])
        torch.testing.assert_close(pack.values_RP[place], single.values_RP[0], atol=PACK, rtol=0)


def test_runs_of_different_shapes_do_not_share_a_pack():
    with pytest.raises(ValueError, match="packable"):
        Pack([run_config(), run_config(batch=4)], torch.device("cpu"))


def test_adamw_equals_torch_with_clipping():
    """Against torch.optim.AdamW and clip_grad_norm_ on the same gradients."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(1, 6, generator=generator, dtype=torch.float64)
    decayed = torch.tensor([True] * 4 + [False] * 2)
    matrix = start[0, :4].clone().requires_grad_()
    vector = start[0, 4:].clone().requires_grad_()
    groups = [{"params": [matrix], "weight_decay": 0.1}, {"params": [vector], "weight_decay": 0.0}]
    theirs = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
    values = start.clone()
    column = torch.ones(1, dtype=torch.float64)
    ours = AdamW(values, decayed, 1e-2 * column, 0.1 * column, 1.0 * column)
    for _ in range(10):
        grad = 3 * torch.randn(1, 6, generator=generator, dtype=torch.float64)
        matrix.grad, vector.grad = grad[0, :4].clone(), grad[0, 4:].clone()
        torch.nn.utils.clip_grad_norm_([matrix, vector], 1.0)
        theirs.step()
        ours.step(grad, grad.norm(dim=1), torch.tensor([True]), 1.0)
    torch.testing.assert_close(values[0], torch.cat([matrix, vector]).detach(), atol=1e-6, rtol=0)


def test_schedule_rises_then_falls_to_a_tenth():
    factors = [schedule(step, 100, 0.1) for step in range(100)]
    assert factors[:10] == pytest.approx([0.1 * (i + 1) for i in range(10)])
    assert factors[10] == 1.0
    assert factors[-1] == pytest.approx(0.1)
    assert all(a >= b for a, b in itertools.pairwise(factors[10:]))
    assert schedule(0, 1, 0.0) == 1.0

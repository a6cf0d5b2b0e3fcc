"""What a training step costs: a pack of eight against eight single steps, and data's share of a step."""

from collections.abc import Callable

import torch
from torch.nn import functional as F

from benchmarks.timing import compare, median, spread
from mclab.config.run import RunConfig
from mclab.kernels.conv import causal_conv
from mclab.kernels.norm import rms_normalise
from mclab.tasks import TASKS
from mclab.train.evaluate import loss_per_replica
from mclab.train.pack import Pack

REPLICAS, REPEATS = 8, 15
#: Data may take this share of a step at B=64.
SHARE = 0.03


def step_of(batch: int, replicas: int, dim: int = 32) -> Callable[[], object]:
    """One whole step (forward, backward, clipping, AdamW) on data that is there already."""
    base = {"task": {"spread": "uniform"}, "model": {"dim": dim}, "train": {"batch": batch}}
    runs = [RunConfig.model_validate({**base, "seed": seed}) for seed in range(replicas)]
    pack = Pack(runs, torch.device("cpu"))
    data = TASKS["mqar"].batch(runs[0].task, list(range(replicas)), "train", 0, batch, "cpu")

    def step() -> None:
        loss = loss_per_replica(pack.model(data.tokens, data.positions), data.answers)
        pack.update(loss, 1, 0.1)

    return step


def packs() -> None:
    print(
        f"\na step of a pack of {REPLICAS} against {REPLICAS} single steps (D=32, T=64), "
        "milliseconds min / median / max"
    )
    for batch in (8, 64):
        pack, single = step_of(batch, REPLICAS), step_of(batch, 1)

        def eight(single: Callable[[], object] = single) -> None:
            for _ in range(REPLICAS):
                single()

        together, apart = compare((pack, eight), REPEATS)
        ratio = median(apart) / median(together)
        print(f"  B={batch:<3} pack {spread(together)}   singles {spread(apart)}   {ratio:.2f} x")


def data_share() -> None:
    """The default task in the blocks that training asks for, against the default step."""
    batch, calls = 64, 16
    config = RunConfig.model_validate({"task": {"spread": "uniform"}}).task
    starts = iter(range(0, 10**9, batch * calls))

    def data() -> None:
        TASKS["mqar"].batch(config, [0], "train", next(starts), batch * calls, "cpu")

    times, steps = compare((data, step_of(batch, 1)), REPEATS)
    share = median(times) / calls / (median(times) / calls + median(steps))
    print("\ndata's share of a step (B=64, default task in blocks of 16 batches), milliseconds min / median / max")
    print(f"  data {spread([t / calls for t in times])}   step {spread(steps)}   {share:.1%} (at most {SHARE:.0%})")


def parts() -> None:
    """Two parts with gradients written out, against what torch offers, at the shapes of a B=64, D=32, T=64 step."""
    x_RBTC = torch.randn(1, 64, 64, 96, requires_grad=True)
    ours, theirs = torch.randn(1, 4, 96, requires_grad=True), torch.randn(96, 1, 4, requires_grad=True)
    x_BCT = x_RBTC.detach()[0].transpose(1, 2).contiguous().requires_grad_()
    narrow = torch.randn(1, 64, 64, 32, requires_grad=True)

    def both(forward: Callable[[], torch.Tensor], *inputs: torch.Tensor) -> Callable[[], object]:
        upstream = torch.randn_like(forward())
        return lambda: torch.autograd.grad(forward(), inputs, upstream)

    rows = {
        "short convolution / grouped conv1d": (
            both(lambda: causal_conv(x_RBTC, ours), x_RBTC, ours),
            both(lambda: F.conv1d(F.pad(x_BCT, (3, 0)), theirs, groups=96), x_BCT, theirs),
        ),
        "normalisation / F.rms_norm": (
            both(lambda: rms_normalise(narrow), narrow),
            both(lambda: F.rms_norm(narrow, (32,), eps=1e-6), narrow),
        ),
    }
    print("\nparts, forward + backward, milliseconds min / median / max")
    for name, sides in rows.items():
        mine, other = compare(sides, 3 * REPEATS)
        print(f"  {name:<36} {spread(mine)}   {spread(other)}   {median(other) / median(mine):.1f} x")


def main() -> None:
    packs()
    parts()
    data_share()

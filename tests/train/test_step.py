"""The step of training: it asks the device for nothing, can be traced as a whole, and launches as little as is said."""

from importlib.util import find_spec
from typing import get_args

import pytest
import torch

from mclab.config.model import RULES, Aggregate
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.kernels import dispatch, launch
from mclab.kernels.delta import checked
from mclab.kernels.fastweight import looped
from mclab.kernels.linear import flash_grm, flash_ssc
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from mclab.tasks import TASKS, Batch
from mclab.train.data import TrainData
from mclab.train.pack import Pack
from mclab.train.routing import Routing
from mclab.train.step import Step
from tests.fixture.cases import MODELS, SIZES, TASK
from tests.fixture.cases import run_of as fixture_run
from tests.launches import Launches

META = torch.device("meta")
CACHED = [f"{memory} {aggregate}" for memory in RULES for aggregate in get_args(Aggregate)]
OTHERS = [
    *("titans grm checkpoint", "titans grm log", "titans grm listed", "titans soup listed restart", "linear grm log"),
    *("linear ssc checkpoint", "linear grm listed", "linear soup none", "vector soup listed checkpoint"),
    *("titans ssc context explore", "linear ssc none explore", "linear ssc input straight_through"),
    *(
        "titans depth 3",
        "dla depth 1",
        "titans to zero",
        "titans without a norm",
        "linear out_gate",
        "mal grm",
        "mag grm",
    ),
    *("log_linear mamba2", "log_linear gated_delta", "attention", "attention/4", "transformer++", "conv"),
    *("pattern", "rotary", "learned"),
]


def made(run: RunConfig, replicas: int, device: torch.device) -> tuple[Step, Batch]:
    """A step of so many replicas, and a batch for it."""
    runs = [run.model_copy(update={"seed": seed}) for seed in range(replicas)]
    pack, seeds = Pack(runs, device), [each.seed for each in runs]
    batch = TASKS[run.task.name].batch(run.task, seeds, "train", 0, run.train.batch, "cpu")
    return Step(pack, Routing(pack.model, run, seeds, device), device), Batch(*(x.to(device) for x in batch))


@pytest.mark.parametrize("case", [*CACHED, *OTHERS])
def test_a_step_asks_the_device_for_nothing(case: str) -> None:
    """A tensor on `meta` has no data: a value read back, or one that lies elsewhere, is an error. Every mixer x
    aggregation, from batch to update, in the first phase of training and in the last."""
    run = fixture_run(case)
    assert case in MODELS
    step, batch = made(run, 2, META)
    for number in (1, run.train.steps):
        loss_R, norm_R = step(batch, number)
        assert (loss_R.shape, norm_R.shape, loss_R.device) == ((2,), (2,), META)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("case", ["linear grm", "titans grm", "linear ssc context annealed", "attention", "train.task"])
def test_a_captured_step_is_the_eager_one(case: str) -> None:
    """Bit for bit, over both phases of a route and both lengths of a mix."""
    run, found = fixture_run(f"train {case}" if case == "train.task" else case), []
    for captures in (False, True):
        step, _ = made(run, 2, torch.device("cuda"))
        assert step.captures
        step.captures = captures
        batches = TrainData(run, [0, 1], torch.device("cuda")).batches()
        steps = [torch.stack(step(batch, number)) for number, batch in enumerate(batches, start=1)]
        found.append([torch.stack(steps), *step.state])
    assert all(torch.equal(captured, eager) for eager, captured in zip(*found, strict=True))


#: What a step of these launches at most, with torch's forms alone. The chunk loop of a deep memory is what a kernel
#: would make one call of: there are some 170 operations a chunk and layer in it.
LAUNCHES = {
    "gating": ({}, 64, 320),
    "gate input": ({"gate": "input"}, 64, 320),
    "titans": ({"memory": "titans", "segment": 8, "chunk": 8}, 64, 1070),
    "titans without a cache": ({"memory": "titans", "aggregate": "none"}, 256, 5650),
    "delta": ({"memory": "delta"}, 64, 600),
    "memora": ({"memory": "memora"}, 64, 730),
    "ssc": ({"aggregate": "ssc"}, 64, 490),
}


def launches(mixer: dict[str, object], length: int, replicas: int) -> int:
    """Operations of one step that is not the first of its shape."""
    run = parse_run({
        "task": {"vocab": 64, "length": length, "pairs": [4]},
        "model": {"dim": 16, "mixer": mixer},
        "train": {"steps": 20, "batch": 2},
    })  # fmt: skip
    step, batch = made(run, replicas, torch.device("cpu"))
    step(batch, 19)
    with Launches() as seen:
        step(batch, 20)
    return seen.total


@pytest.mark.parametrize("case", LAUNCHES)
def test_how_much_is_launched_does_not_depend_on_how_many_train_together(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted on a CPU with the forms that a GPU has."""
    monkeypatch.setattr(dispatch, "_CPU", dispatch._CUDA)
    mixer, length, most = LAUNCHES[case]
    one, many = (launches(mixer, length, replicas) for replicas in (1, 16))
    assert one <= most
    assert abs(many - one) <= 5


#: The same with Triton's kernels, each of which is one call: for the chunk loop however many chunks there are.
KERNEL_LAUNCHES = {
    "gating": ({}, 64, 260),
    "gate input": ({"gate": "input"}, 64, 260),
    "titans": ({"memory": "titans", "segment": 8, "chunk": 8}, 64, 690),
    "titans without a cache": ({"memory": "titans", "aggregate": "none"}, 256, 390),
    "ssc": ({"aggregate": "ssc"}, 64, 460),
    "delta": ({"memory": "delta"}, 64, 500),
    "gated delta without a cache": ({"memory": "gated_delta", "aggregate": "none"}, 256, 330),
    "titans of twice the chunks": ({"memory": "titans", "aggregate": "none", "chunk": 8}, 256, 390),
}


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
@pytest.mark.parametrize("case", KERNEL_LAUNCHES)
def test_a_kernel_is_one_launch(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted without running them: what they write is left as it is."""
    kernels: list[str] = []
    monkeypatch.setattr(dispatch, "_CPU", dispatch._CUDA)
    monkeypatch.setattr(dispatch, "_lacks", lambda *about: "")
    monkeypatch.setattr(looped, "trusted", lambda *about: True)
    monkeypatch.setattr(flash_grm, "trusted", lambda *about: True)
    monkeypatch.setattr(flash_ssc, "trusted", lambda *about: True)
    monkeypatch.setattr(checked, "trusted", lambda *about: True)
    monkeypatch.setattr(launch, "_run", lambda kernel, *rest: kernels.append(kernel.__name__))
    mixer, length, most = KERNEL_LAUNCHES[case]
    others = launches(mixer, length, 1)
    a_step = len(kernels) // 2  # `launches` runs two, and counts the second
    # Seven of the chunk loop, and two of Titans' rates.
    forward_and_backward = {"titans": 9, "linear": 3}.get(str(mixer.get("memory", "linear")), 6)
    assert a_step == 2 * forward_and_backward, kernels
    assert others + a_step <= most, others + a_step


@pytest.mark.parametrize("case", [*CACHED, *OTHERS])
def test_the_forms_of_a_gpu_compute_the_same(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms are chosen by a device's costs: here on a CPU by those of a GPU. Losses and gradient norms of two steps."""
    found = []
    for costs in (dispatch._CPU, dispatch._CUDA):
        monkeypatch.setattr(dispatch, "_CPU", costs)
        step, batch = made(fixture_run(case), 2, torch.device("cpu"))
        found.append(torch.stack([torch.stack(step(batch, number)) for number in (1, 2)]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own code
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("case", [*(f"{memory} grm" for memory in RULES), "linear ssc", "titans soup", *OTHERS[-9:-3]])
def test_a_mixer_is_traced_without_a_break(case: str) -> None:
    """`torch.compile(fullgraph=True)` takes every mixer, and what it makes of it gives the same gradients."""
    model = {**MODELS[case]}
    if "segment" in model.get("mixer", ()):
        model["mixer"] = {**model["mixer"], "segment": 4, "chunk": 4}
    run = parse_run({
        "task": {**TASK, "length": 8, "pairs": [2]},
        "model": {**SIZES, **({"layers": 1} if "pattern" not in model else {}), **model},
        "train": {"steps": 2, "batch": 2, "precision": "fp64"},
        "eval": {"every": 1, "valid": 2, "test": 2},
    })  # fmt: skip
    lm = LM(run, 1)
    initialise(lm, [0])
    lm.double()
    data = TASKS["mqar"].batch(run.task, [0], "train", 0, 2, "cpu")
    found = []
    for function in (lm, torch.compile(lm, fullgraph=True, backend="eager")):
        logits = function(data.tokens, data.positions)
        found.append(torch.autograd.grad(logits.square().sum(), list(lm.parameters()), allow_unused=True))
    for own, traced in zip(*found, strict=True):
        assert (own is None) == (traced is None)
        if own is not None:
            torch.testing.assert_close(traced, own, rtol=1e-10, atol=1e-12)

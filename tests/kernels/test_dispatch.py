"""Which implementation computes a rule, and the costs by which torch's own forms are chosen."""

import pytest
import torch

from mclab.caching.segment import ConstantSegments
from mclab.config.run import RunConfig
from mclab.kernels import dispatch, selfcheck
from mclab.kernels.dispatch import Choice, Kernel, Shape, choices, costs, resolve, rules_of, using
from mclab.kernels.linear.chunkwise import weighted_costs
from mclab.memories.sparse_read import cost_of_all, cost_of_chosen
from mclab.models.mixers import MIXERS
from mclab.train.provenance import _computed_by

NARROW = Shape(64, 16)


def test_torch_computes_what_has_no_kernel_and_says_why() -> None:
    for device in ("cpu", "cuda:1"):
        found = resolve("rwkv7", device, "fp32", NARROW, "triton")
        assert found == Choice("torch", "mclab has no Triton kernel for it")


@pytest.mark.parametrize(
    ("device", "precision", "width", "reason"),
    [
        ("cpu", "bf16", 16, "Triton needs a CUDA device, not cpu"),
        ("cuda", "fp64", 16, "its Triton kernel does not compute in fp64"),
        ("cuda", "bf16", 65, "its Triton kernel computes heads of at most width 64 in bf16, not 65"),
        ("cuda", "bf16", 64, ""),
    ],
)
def test_a_kernel_is_taken_where_it_can_be(monkeypatch, device, precision, width, reason) -> None:
    monkeypatch.setitem(dispatch.KERNELS, "linear", Kernel({"fp32": 64, "bf16": 64}))
    monkeypatch.setattr(dispatch, "_installed", lambda: True)
    for asked in ("auto", "triton"):
        found = resolve("linear", device, precision, Shape(64, width), asked)
        assert found == Choice("torch" if reason else "triton", reason)
    assert resolve("linear", device, precision, Shape(64, width), "torch").form == "torch"
    monkeypatch.setattr(dispatch, "_installed", lambda: False)
    assert resolve("linear", "cuda", "fp32", NARROW).why_not == "triton is not installed"


@pytest.mark.parametrize(
    ("mixer", "said"),
    [
        ({}, ""),
        ({"aggregate": "soup", "gate": "input"}, ""),
        ({"aggregate": "none"}, ""),
        ({"aggregate": "residual", "init": "checkpoint"}, "init restart, not checkpoint"),
        ({"init": "checkpoint"}, "init restart, not checkpoint"),
        ({"segmentation": "log"}, "not segmentation log"),
        ({"gate_activation": "sigmoid"}, "not sigmoid"),
        ({"aggregate": "ssc", "gate": "tests.own.parts.leaky_gate", "gate_activation": "sigmoid"}, ""),
        ({"aggregate": "ssc", "segmentation": "log"}, "not segmentation log"),
        ({"gate": "tests.own.parts.leaky_gate"}, "cannot compute a gate or an aggregation of the user's own"),
        (
            {"aggregate": "tests.own.parts.leaky_aggregate", "gate": "none"},
            "cannot compute a gate or an aggregation of the user's own",
        ),
        ({"memory": "titans"}, ""),
        ({"memory": "dla", "memory_norm": "soft", "init": "checkpoint", "segmentation": "log"}, ""),
        ({"memory": "titans", "depth": 3}, "depth 2, not 3"),
        ({"memory": "titans", "aggregate": "soup"}, "aggregate soup mixes their matrices"),
        ({"memory": "titans", "chunk": 64, "segment": 64}, "chunks of at most 32 tokens at this width, not 64"),
        ({"memory": "titans", "chunk": 64, "segment": 8}, ""),
        ({"memory": "delta"}, ""),
        ({"memory": "gated_delta", "aggregate": "ssc", "init": "checkpoint", "segmentation": "log"}, ""),
        ({"memory": "gated_delta", "aggregate": "soup"}, "aggregate soup mixes them"),
    ],
)
def test_what_a_kernel_does_not_compute_is_said(monkeypatch, mixer, said) -> None:
    monkeypatch.setattr(dispatch, "_installed", lambda: True)
    run = RunConfig.model_validate({"model": {"dim": 16, "mixer": mixer}})
    (found,) = choices(run, "cuda", "triton").values()
    assert (found.form, said in found.why_not) == ("torch" if said else "triton", True)


@pytest.mark.parametrize(
    ("mixer", "length", "precision", "said"),
    [
        ({"aggregate": "ssc"}, 1024, "fp32", ""),
        ({"aggregate": "ssc"}, 1026, "fp32", "costs more beyond 1024 tokens in fp32"),
        ({"aggregate": "ssc"}, 1026, "bf16", ""),
        ({"aggregate": "none"}, 4098, "bf16", "costs more without a gate beyond 4096 tokens"),
        ({"aggregate": "grm"}, 4098, "fp32", ""),
    ],
)
def test_torch_computes_what_costs_less_there(monkeypatch, mixer, length, precision, said) -> None:
    monkeypatch.setattr(dispatch, "_installed", lambda: True)
    keys = {"task": {"length": length, "pairs": [4]}, "train": {"precision": precision}}
    run = RunConfig.model_validate({"model": {"dim": 16, "mixer": mixer}, **keys})
    (found,) = choices(run, "cuda").values()
    assert (found.form, said in found.why_not) == ("torch" if said else "triton", True)


def test_a_kernel_that_fails_its_check_is_named_once_and_not_used(monkeypatch, capsys) -> None:
    monkeypatch.setattr(dispatch, "_installed", lambda: True)
    monkeypatch.setattr(dispatch, "_distrusted", {})
    monkeypatch.setattr(selfcheck, "_seen", {})
    run, one = RunConfig.model_validate({"model": {"dim": 16}}), torch.ones(3)
    device = torch.device("cuda:0")

    def fails() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        raise RuntimeError("out of shared memory")

    assert selfcheck.trusted("linear", device, "fp32", 1, lambda: ([one], [one + 1e-6]))
    assert choices(run, "cuda")["linear"].form == "triton"
    for _ in range(2):
        assert not selfcheck.trusted("linear", device, "fp32", 2, lambda: ([one], [one + 1e-3]))
    assert not selfcheck.trusted("titans", device, "fp32", 3, fails)
    assert not selfcheck.trusted("dla", device, "fp32", 4, lambda: ([one * torch.nan], [one]))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "on cuda:0 torch's form of linear is used: its Triton kernel has a relative RMS error of 1.0e-03" in lines[0]
    assert "titans" in lines[1]
    assert "does not run on this device (RuntimeError: out of shared memory)" in lines[1]
    assert "relative RMS error of inf" in lines[2]
    for kernels in ("auto", "triton"):
        found = choices(run, "cuda", kernels)["linear"]
        assert (found.form, found.failed) == ("torch", True)
    assert "relative RMS error of 1.0e-03" in _computed_by("linear", found)


def test_what_was_asked_for_holds_in_the_block_alone(monkeypatch) -> None:
    monkeypatch.setitem(dispatch.KERNELS, "linear", Kernel({"fp32": 64}))
    monkeypatch.setattr(dispatch, "_installed", lambda: True)

    def fails() -> None:
        with using("torch"):
            assert resolve("linear", "cuda", "fp32", NARROW) == Choice("torch", "--kernels torch")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert resolve("linear", "cuda", "fp32", NARROW).form == "triton"


def test_every_mixer_has_a_rule() -> None:
    def run(mixer, **keys) -> RunConfig:
        return RunConfig.model_validate({"model": {"dim": 32, "layers": 2, "mixer": mixer, **keys}})

    assert rules_of(run({"memory": "titans", "hybrid": "mal"})) == ["titans", "attention"]
    assert rules_of(run({}, pattern=["conv/3", "mixer"])) == ["conv", "linear"]
    for name in set(MIXERS) - {"memory", "module"}:
        assert rules_of(run({"name": name})) == [name]
    assert choices(run({}), "cpu") == {"linear": resolve("linear", "cpu", "fp32", NARROW)}


def test_no_form_on_a_gpu_depends_on_how_many_train_together() -> None:
    """On a CPU it may: there it is a question of arithmetic alone."""
    segments, on = ConstantSegments(256, 8), costs("cuda")
    assert weighted_costs(64, 256, 16, 16, 8, on) == weighted_costs(1024, 256, 16, 16, 8, on)
    for cost in (
        lambda sequences: cost_of_all(segments, sequences, 256, on),
        lambda sequences: cost_of_chosen(segments, sequences, 2, 31, 256, on),
    ):
        assert cost(64) == cost(1024)
    assert cost_of_all(segments, 1024, 256, costs("cpu")) == 16 * cost_of_all(segments, 64, 256, costs("cpu"))
    assert costs(torch.device("meta").type) is on

"""The draws of `route: explore`: of seed and step alone, whoever trains beside, on whatever device."""

import dataclasses

import pytest
import torch
from safetensors.torch import load

from mclab.caching.layer import CachingLayer
from mclab.config.options import Keep
from mclab.config.run import RunConfig
from mclab.models.lm import LM
from mclab.replicas.parameters import initialise
from mclab.train import train_pack
from mclab.train.evaluate import EvalSet
from mclab.train.routing import Routing
from tests.registries import words
from tests.tolerances import PACK

#: Two layers that choose, seven segments.
MODEL = {"dim": 8, "layers": 2, "heads": 2}
MIXER = {"aggregate": "ssc", "segment": 2, "k": 1}


def run_of(seed=0, route="explore", steps=20, **mixer):
    return RunConfig.model_validate({
        "seed": seed,
        "task": {"vocab": 16, "length": 14, "pairs": [2]},
        "model": {**MODEL, "mixer": {**MIXER, "route": route, **mixer}},
        "train": {"steps": steps, "batch": 4, "precision": "fp64"},
        "eval": {"every": 10, "valid": 4, "test": 16},
    })  # fmt: skip


def draws(seeds, step, device="cpu", length=14):
    """[layers, R, B, H, T] of one step."""
    run = run_of()
    model = LM(run, len(seeds))
    with Routing(model, run, seeds, torch.device(device)).at(step, length):
        found = [layer.route_step for layer in model.modules() if isinstance(layer, CachingLayer)]
    return torch.stack([step.draws_GT.view(len(seeds), 4, 2, -1) for step in found])


def test_draws_are_these_numbers():
    """On every machine and device, for ever: a run that is resumed elsewhere goes on with them."""
    found = draws([0, 3], 5)
    assert found.shape == (2, 2, 4, 2, 14)
    assert found.dtype == torch.int32
    assert found[:, :, 0, 0, 0].tolist() == [[213901490, 559408530], [1518375976, 113724652]]


def test_draws_of_a_replica_are_its_own():
    together = draws([4, 9, 2], 7)
    for place, seed in enumerate([4, 9, 2]):
        assert torch.equal(together[:, place], draws([seed], 7)[:, 0])


def test_draws_differ_between_all_that_draw_and_are_uniform():
    """Seeds, steps, layers, sequences, heads and tokens: 16,800 numbers, of which a stream used twice would repeat."""
    found = torch.cat([draws([0, 1, 2], step) for step in range(1, 26)]).flatten()
    assert len(found.unique()) > len(found) - 5
    counts = torch.histc(found.double(), 8, 0, 2**31)
    assert ((counts - 2100).abs() < 5 * 2100**0.5).all()


@pytest.mark.parametrize("gate", words("gate"))
@pytest.mark.parametrize("route", words("route"))
def test_a_step_reads_nothing_back(route, gate):
    """A meta tensor holds no data: whatever would read a value back from a device fails on it."""
    run, meta = run_of(route=route, gate=gate), torch.device("meta")
    model = LM(run, 1).to(meta)
    layer = next(module for module in model.modules() if isinstance(module, CachingLayer))
    inputs = [torch.zeros(1, 4, 14, 8, device=meta, requires_grad=True) for _ in range(4)]
    with Routing(model, run, [0], meta).at(1, 14):
        y = layer._read(*inputs, False)
    torch.autograd.grad(y.sum(), [*inputs, *layer.parameters()], allow_unused=True)


@pytest.mark.parametrize("route", words("route", but=["hard"]))
def test_a_pack_is_its_runs(route):
    runs = [run_of(seed, route) for seed in (0, 5, 3)]
    for run, found in zip(runs, train_pack(runs, device="cpu", keep=Keep(weights=True)), strict=True):
        (single,) = train_pack([run], device="cpu", keep=Keep(weights=True))
        mine, alone = load(found.weights), load(single.weights)
        for name, values in mine.items():
            torch.testing.assert_close(values, alone[name], atol=PACK, rtol=0)


def test_routes_train_otherwise():
    found = {}
    for route in words("route"):
        (outcome,) = train_pack([run_of(route=route)], device="cpu", keep=Keep(weights=True))
        found[route] = load(outcome.weights)["embedding"]
    pairs = [(a, b) for a in found for b in found if a < b]
    assert all((found[a] - found[b]).abs().max() > 1e-6 for a, b in pairs)


@pytest.mark.parametrize("route", words("route", but=["hard"]))
def test_what_is_scored_is_the_sparse_model(route):
    """The weights in a model with `route: hard` have the same scores."""
    run = run_of(route=route, steps=10)
    (outcome,) = train_pack([run], device="cpu", keep=Keep(weights=True))
    hard = LM(run_of(route="hard"), 1).double()
    initialise(hard, [0])
    stored = load(outcome.weights)
    for name, parameter in hard.named_parameters():
        parameter.data[0] = stored[name]
    (scores,) = EvalSet(run, [0], "test", 16, torch.device("cpu")).scores(hard, torch.autocast("cpu", enabled=False))
    assert {name: dataclasses.astuple(score) for name, score in scores.items()} == {
        name: dataclasses.astuple(score) for name, score in outcome.test.items()
    }

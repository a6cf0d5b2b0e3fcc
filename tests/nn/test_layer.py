"""`mclab.nn` as a torch module: arguments, start, types, state."""

import copy
import inspect
import re

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mclab.config.model import MemoryMixer
from mclab.nn import OWN, MemoryCaching
from tests.covering import Row
from tests.nn.bench import DIM, B, made, tokens


def test_every_key_of_a_grids_mixer_is_an_argument_with_the_same_default() -> None:
    """But for the segment, which a bench at toy length has shorter, and for what parts of the user's own are given."""
    given = inspect.signature(MemoryCaching).parameters
    fields = {key: field for key, field in MemoryMixer.model_fields.items() if key not in ("name", *OWN)}
    assert set(fields) <= set(given)
    differing = [key for key, field in fields.items() if given[key].default != field.default]
    assert differing == ["segment"]


@pytest.mark.parametrize("key", ["memory", "gate", "aggregate"])
def test_parts_of_ones_own_are_refused_by_name(key: str) -> None:
    with pytest.raises(ValueError, match=f"^{key}: 'my_parts.Mine' is a part of your own"):
        MemoryCaching(8, **{key: "my_parts.Mine"})


def test_bf16_weights_learn() -> None:
    layer, x = made(memory="titans", gate="input", dtype=torch.bfloat16), tokens(dtype=torch.bfloat16)
    layer(x).float().square().mean().backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in layer.parameters())
    assert {value.dtype for value in layer.parameters()} == {torch.bfloat16}


def test_the_start_follows_the_generator_or_the_global_seed() -> None:
    def start(seed: int | None = None) -> Tensor:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return torch.cat([value.flatten() for value in MemoryCaching(DIM, generator=generator).parameters()])

    assert torch.equal(start(3), start(3))
    assert not torch.equal(start(3), start(4))
    torch.manual_seed(5)
    first, second = start(), start()
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(start(), first)
    layer = copy.deepcopy(MemoryCaching(DIM))
    layer.reset_parameters(torch.Generator().manual_seed(3))
    assert torch.equal(torch.cat([value.flatten() for value in layer.parameters()]), start(3))


def test_device_and_type_are_those_that_are_asked_for() -> None:
    assert next(MemoryCaching(DIM, device="meta", dtype=torch.bfloat16).parameters()).is_meta
    with torch.device("meta"):
        assert {value.device.type for value in MemoryCaching(DIM).parameters()} == {"meta"}
    cache = made().empty_cache(B)
    _, cache = made()(tokens(), cache=cache)
    moved = cache.to("meta", torch.float32).state_dict()
    assert {each.device.type for each in moved.values() if each.dim()} == {"meta"}
    assert {each.dtype for each in moved.values()} == {torch.float32, torch.int64}


def test_state_dicts_go_round_with_the_replica_axis_and_without() -> None:
    layer, other, x = made(0, gate="input"), made(1, gate="input"), tokens()
    assert not torch.equal(layer(x), other(x))
    model = nn.Sequential(other)
    model.load_state_dict({f"0.{name}": value[0] for name, value in layer.state_dict().items()})
    assert torch.equal(model(x), layer(x))
    third = made(2, gate="input")
    third.load_state_dict(layer.state_dict())
    assert torch.equal(third(x), layer(x))


def test_gradient_checkpointing_changes_nothing() -> None:
    layer, x = made(memory="titans", aggregate="ssc", chunk=2), tokens().requires_grad_()
    sources = [x, *layer.parameters()]
    plain = torch.autograd.grad(layer(x).square().sum(), sources)
    y = checkpoint(layer, x, use_reentrant=False)
    assert all(map(torch.equal, plain, torch.autograd.grad(y.square().sum(), sources)))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"dim": 0}, "dim: must be int >= 1"),
        ({"dim": 10, "heads": 3}, "heads: 3 heads do not divide dim 10"),
        ({"memory": "titan"}, "memory: must be titans"),
        ({"aggregate": "grmm"}, "aggregate: must be grm"),
        ({"gate": None}, "gate: must be none"),
        ({"segment": 0}, "segment: must be int >= 1"),
        ({"k": 1.5}, "k: must be int >= 1"),
        ({"segmentation": "listed"}, "segment_lengths: segmentation listed needs the lengths"),
        ({"memory": "titans", "aggregate": "soup", "gate": "none"}, "gate: aggregate soup sums the weight matrices"),
        ({"dim": 6, "heads": 2, "position": "rotary"}, "position: rotary needs an even head width"),
        ({"slots": 0}, "slots: must be a whole number from 1 to 1048576, got 0"),
        ({"gain": 0.0}, "gain: must be a number above 0, got 0.0"),
    ],
)
def test_a_wrong_argument_is_named_with_its_range(keys: Row, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}[^\n]*$"):
        MemoryCaching(**{"dim": DIM, **keys})


def test_what_a_call_cannot_take_is_named() -> None:
    layer, x = made(), tokens()
    cache = layer.empty_cache(B)
    _, used = layer(x, cache=cache)
    for call, message in (
        (lambda: layer(x[0]), r"x: must have the shape \[batch, time >= 1, 8\], got \[14, 8\]"),
        (lambda: layer(x[..., :7]), r"x: .* got \[2, 14, 7\]"),
        (lambda: layer(x[:, :0]), r"x: .* got \[2, 0, 8\]"),
        (lambda: layer(x[:1], cache=used), "cache: it has 2 sequences, but x has 1"),
        (lambda: made(segment=4)(x, cache=used), "cache: it is the cache of a layer with other keys"),
        (
            lambda: made(memory="delta").load_cache(used.state_dict()),
            "state: it is the cache of a layer with other keys",
        ),
        (lambda: layer.load_cache({}), "state: it is not a cache of this layer, because 'batch' is missing"),
        (lambda: layer.empty_cache(0), "batch: must be a whole number of at least 1, got 0"),
        (lambda: used.cut(-1), "segments: must be a whole number of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("segmnt", "segmnt: this is not an argument of MemoryCaching; did you mean segment?"),
        ("xyz", "xyz: this is not an argument of MemoryCaching; its arguments are dim, heads, memory, "),
        (
            "gate_args",
            "gate_args: this is not an argument of MemoryCaching; parts of your own work in a grid, not in this layer",
        ),
    ],
)
def test_a_name_that_is_no_argument_is_told_with_the_nearest(name: str, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        MemoryCaching(DIM, **{name: 1})

"""A part more in a registry is in every suite over its axis, and the definition refuses what it does not know."""

from collections.abc import Callable
from typing import Any, Literal, get_origin

import pytest
import torch

from mclab.caching import activation, aggregate, connector, gate, init, pool, route, segment
from mclab.caching.layer import CachingLayer
from mclab.caching.recurrent import recurrent
from mclab.config import task as config_task
from mclab.config.model import RULES, MemoryMixer
from mclab.config.model.rules import Rule
from mclab.models import hybrid, mixers
from tests.caching import test_layer, test_memories, test_record_weights, test_route, test_sparse_read
from tests.models import cases as models
from tests.nn import bench
from tests.registries import REGISTRIES, words
from tests.tasks import cases
from tests.train import test_cover, test_words

NEW = "brand_new"
#: Where a new word of each axis has to turn up.
SUITES: dict[str, Callable[[], dict[str, Any]]] = {
    "layer": test_layer.axes,
    "memories": test_memories.axes,
    "route": test_route.axes,
    "chosen": test_sparse_read.axes,
    "watch": test_record_weights.axes,
    "mixer": models.mixer_axes,
    "memory": models.memory_axes,
    "cover": test_cover.axes,
    "nn": lambda: bench.product_axes() | bench.other_axes(),
}
#: Axis, the registry that it is read from, what is put there, and the suites that have the axis.
PARTS: list[tuple[str, dict[str, Any], Any, set[str]]] = [
    ("memory", RULES, Rule(), {"memories", "route", "chosen", "memory", "cover", "nn"}),
    (
        "aggregate",
        aggregate.AGGREGATES,
        aggregate.grm,
        {"layer", "memories", "watch", "mixer", "memory", "cover", "nn"},
    ),
    ("gate", gate.GATES, gate.NoGate, {*SUITES}),
    ("gate_activation", activation.ACTIVATIONS, activation.sigmoid, {*SUITES} - {"chosen", "memory"}),
    ("connector", connector.CONNECTORS, connector.Shared, {"layer", "route", "watch", "mixer", "cover", "nn"}),
    ("init", init.INITS, init.Restart(), {*SUITES} - {"memory"}),
    ("pool", pool.POOLS, pool.mean, {*SUITES} - {"chosen", "memory"}),
    ("route", route.ROUTES, route.hard, {"route", "mixer", "cover"}),
    ("segmentation", segment.SEGMENTS, segment.LogSegments, {"memories", "route", "chosen", "memory", "cover", "nn"}),
]


@pytest.mark.parametrize(("axis", "registry", "part", "suites"), PARTS, ids=[axis for axis, *_ in PARTS])
def test_a_part_more_is_in_every_suite(
    axis: str, registry: dict[str, Any], part: Any, suites: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pytest's parameters are made of is made anew here, with one part more."""
    before = {name for name, make in SUITES.items() if NEW in make().get(axis, ())}
    monkeypatch.setitem(registry, NEW, part)
    assert {name for name, make in SUITES.items() if NEW in make().get(axis, ())} == suites
    assert not before


@pytest.mark.parametrize(("registry", "part"), [("mixer", mixers.MIXERS), ("hybrid", hybrid.HYBRIDS)])
def test_a_mixer_or_hybrid_more_is_a_word(registry: str, part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(part, NEW, next(iter(part.values())))
    assert NEW in words(registry)


def test_a_hybrid_more_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hybrid.HYBRIDS, NEW, hybrid.HYBRIDS["mal"])
    assert f"{NEW} grm" in test_words.mixers()


def test_a_task_more_is_in_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config_task.TASKS, NEW, config_task.ArTask)
    assert NEW in words("task")
    assert NEW in cases.cases()


def test_every_axis_of_a_cache_is_read_from_somewhere() -> None:
    """A new key with words of its own wants a row, so that suites can cover it."""
    worded = {name for name, field in MemoryMixer.model_fields.items() if get_origin(field.annotation) is Literal}
    assert worded - {"name"} <= {*REGISTRIES}


@pytest.mark.parametrize(("axis", "registry", "part"), [
    (axis, registry, part) for axis, registry, part, _ in PARTS if axis not in ("memory", "connector", "init")
])  # fmt: skip
def test_the_definition_refuses_a_word_that_it_does_not_know(
    axis: str, registry: dict[str, Any], part: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layer reads with the new part; taken for another word, it would be tested against that one's formula. (A
    memory, a connector and an init define themselves: the definition calls them.)"""
    monkeypatch.setitem(registry, NEW, part)
    usual = {"aggregate": "ssc"} if axis == "route" else {}
    mixer = MemoryMixer(segment=3, **usual).model_copy(update={axis: NEW})
    layer = CachingLayer(1, 4, 1, 7, mixer)
    inputs = [torch.ones(1, 1, 7, 4)] * 4
    layer(*inputs)
    with pytest.raises(ValueError, match=f"the definition does not know {axis} '{NEW}'"):
        recurrent(layer, *inputs)


def test_a_pool_of_that_is_unknown_is_refused() -> None:
    """It is an axis without a registry."""
    layer = CachingLayer(1, 4, 1, 7, MemoryMixer(segment=3).model_copy(update={"pool_of": NEW}))
    with pytest.raises(ValueError, match="the definition does not know pool_of"):
        recurrent(layer, *[torch.ones(1, 1, 7, 4)] * 4)

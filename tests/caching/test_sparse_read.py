"""SSC reads what it chose and no more, and gives what the definition gives, whichever way it reads."""

import math
from typing import Any

import pytest
import torch

from mclab.caching.layer import CachingLayer
from mclab.caching.recurrent import recurrent
from mclab.caching.route import select
from mclab.config.model import RULES, MemoryMixer
from mclab.kernels import sparse_read as kernel
from mclab.memories import sparse_read, vector
from mclab.replicas.parameters import initialise
from tests.caching import test_layer, test_memories
from tests.caching.test_route import in_training
from tests.covering import label, pairwise
from tests.layers import assert_same_with_gradients
from tests.registries import words


def axes() -> dict[str, list[Any]]:
    return {
        "route": ["hard", "explore"],
        "memory": words("memory"),
        "segmentation": words("segmentation"),
        "segment_lengths": [(2, 4, 2), (3, 6)],
        "gate": words("gate"),
        "init": words("init"),
        "renormalise": [True, False],
        "depth": [1, 2, 3],
        "k": [1, 2, 9],
        "segment": [1, 3, 5, 40],
        "length": [13, 16],
        "heads": [1, 2],
    }


AXES = axes()


@pytest.fixture
def sorted_reads(monkeypatch):
    """Reads are sorted however little there is to read; the list grows with each."""
    used = []
    blocks = kernel.sort_into_blocks
    monkeypatch.setattr(sparse_read, "cost_of_chosen", lambda *arguments: -math.inf)
    monkeypatch.setattr(vector, "GATHER", 0)
    monkeypatch.setattr(kernel, "sort_into_blocks", lambda *arguments: used.append(1) or blocks(*arguments))
    return used


@pytest.mark.parametrize("case", pairwise(AXES), ids=label)
def test_sorted_reads_equal_the_definition(case, sorted_reads):
    layer, inputs = test_memories.layer_and_inputs(aggregate="ssc", **case)
    in_training(layer, length=case["length"])
    assert_same_with_gradients(layer(*inputs), recurrent(layer, *inputs), [*inputs, *layer.parameters()])
    assert bool(sorted_reads) == (layer.mixer.segments(case["length"]) > 1 and RULES[case["memory"]].shape == "matrix")


@pytest.mark.parametrize(
    "case", pairwise({k: AXES[k] for k in ("route", "gate", "init", "k", "renormalise")}), ids=label
)
def test_sorted_reads_of_the_linear_memory_equal_the_definition(case, sorted_reads):
    layer, inputs = test_layer.layer_and_inputs(aggregate="ssc", segment=4, length=17, **case)
    in_training(layer, length=17, sequences=4)
    fast, slow = layer(*inputs, True), recurrent(layer, *inputs, True)
    assert_same_with_gradients(fast, slow, [*inputs, *layer.parameters()], rtol=0)
    assert sorted_reads


@pytest.mark.parametrize("memory", [word for word in words("memory") if RULES[word].shape == "matrix"])
def test_a_replica_that_is_lost_leaves_the_others_as_they_are(memory, sorted_reads):
    """Blocks of all replicas are read together; the first tokens choose nothing, which is a block of its own."""
    made, inputs = test_memories.layer_and_inputs(
        length=13, replicas=3, memory=memory, aggregate="ssc", segment=3, chunk=2, route="hard"
    )
    before = made(*inputs)[1]
    for values in made.parameters():
        values.data[0] = values.data[2] = torch.nan
    assert torch.equal(made(*inputs)[1], before)
    assert sorted_reads


def layer(memory, segment, length, width=64):
    made = CachingLayer(1, width, 2, length, MemoryMixer(memory=memory, aggregate="ssc", segment=segment))
    initialise(made, [0])
    generator = torch.Generator().manual_seed(0)
    return made, [torch.randn(1, 1, length, width, generator=generator) for _ in range(4)]


@pytest.mark.parametrize(("memory", "sorts"), [("linear", 2048), ("retnet", 2048), ("titans", 1024)])
def test_short_sequences_are_read_as_grm_reads_them(monkeypatch, memory, sorts):
    used = []
    blocks = kernel.sort_into_blocks
    monkeypatch.setattr(kernel, "sort_into_blocks", lambda *arguments: used.append(1) or blocks(*arguments))
    for length in (256, sorts):
        made, inputs = layer(memory, 64, length)
        with torch.no_grad():
            made(*inputs)
        assert bool(used) == (length == sorts)


def test_selection_by_hand():
    """Two kept memories and the online one in columns 0, 1 and 2 of the last token; none is past for the first."""
    own_TN = torch.tensor([[True, False, False], [False, True, False], [False, False, True]])
    past_TN = torch.tensor([[False, False, False], [True, False, False], [True, True, False]])
    scores_GTN = torch.tensor([[[9.0, 9, 9], [-5, 9, 9], [1, 2, 9]]])
    one = select(scores_GTN, past_TN, own_TN, 1)
    assert one.tolist() == [[[0, 0], [0, 1], [1, 2]]]
    for k in (2, 7):
        assert select(scores_GTN, past_TN, own_TN, k).tolist() == [[[0, 0, 0], [0, 1, 1], [1, 0, 2]]]

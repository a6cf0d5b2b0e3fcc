"""`mclab.nn`: whole, in pieces and token by token are the same."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from mclab.caching.aggregate import AGGREGATES
from mclab.caching.init import INITS
from mclab.caching.segment import SEGMENTS
from mclab.memories import MEMORIES
from mclab.models.hybrid import HYBRIDS
from tests.covering import Row, full, label, pairwise
from tests.nn.bench import PIECES, cases, in_pieces, made, product_axes, tokens
from tests.tolerances import BF16, FP64

#: A pairwise cover of memories, aggregations, inits and segmentations, and their whole product for make test-all.
ROWS = [pytest.param(pairwise, id="cover"), pytest.param(full, id="product", marks=pytest.mark.product)]
Rows = Callable[[dict[str, list[Any]]], list[Row]]


def of(memory: str, rows: Rows) -> Iterator[Row]:
    return (case for case in cases(rows(product_axes())) if case["memory"] == memory)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_whole_in_pieces_and_token_by_token_are_the_same(memory: str, rows: Rows) -> None:
    """With the cache on disk in between, off every end."""
    for case in of(memory, rows):
        layer, x = made(**case), tokens()
        with torch.no_grad():
            whole = layer(x)
            for ends in PIECES:
                stepped = in_pieces(layer, x, ends, disk_at=10)
                torch.testing.assert_close(stepped, whole, atol=FP64, rtol=FP64, msg=label(case))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_with_weights_in_bf16_too(memory: str, rows: Rows) -> None:
    for case in of(memory, rows):
        layer, x = made(**case, dtype=torch.bfloat16), tokens(dtype=torch.bfloat16)
        with torch.no_grad():
            whole = layer(x).float()
            for ends in PIECES:
                stepped = in_pieces(layer, x, ends, disk_at=10)
                assert stepped.dtype == torch.bfloat16
                error = (stepped - whole).square().mean() / whole.square().mean()
                assert error.sqrt() < BF16, label(case)


@pytest.mark.parametrize(
    "case", pairwise({"hybrid": list(HYBRIDS), "window": [1, 3, 40], "position": ["none", "rotary"]}), ids=label
)
def test_hybrids_too(case: Row) -> None:
    layer, x = made(memory="titans", heads=2, chunk=2, **case), tokens()
    with torch.no_grad():
        for ends in PIECES:
            torch.testing.assert_close(in_pieces(layer, x, ends, disk_at=10), layer(x), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("memory", ["swla", "titans", "vector"])
def test_buckets_of_many_segments(memory: str, init: str) -> None:
    """21 segments of one token: buckets of up to sixteen come and go, all of which begin again or none."""
    layer, x = made(memory=memory, init=init, segmentation="log", segment=1, chunk=2, gate="input"), tokens(21)
    with torch.no_grad():
        for ends in ((0, 5, 21), tuple(range(22))):
            torch.testing.assert_close(in_pieces(layer, x, ends, disk_at=5), layer(x), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("memory", MEMORIES)
def test_gradients_are_those_of_the_parallel_form(memory: str) -> None:
    place = list(MEMORIES).index(memory)
    aggregate = [word for word in AGGREGATES if word != "none"][place % 4]
    init, segmentation = list(INITS)[place % 2], list(SEGMENTS)[place % 3]
    layer = made(memory=memory, aggregate=aggregate, init=init, segmentation=segmentation, chunk=2, heads=2)
    x = tokens(9).requires_grad_()
    sources, found = [x, *layer.parameters()], []
    for y in (layer(x), in_pieces(layer, x, (0, 5, 6, 9))):
        upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        found.append(torch.autograd.grad(y, sources, upstream, allow_unused=True, materialize_grads=True))
    for parallel, stepped in zip(*found, strict=True):
        torch.testing.assert_close(stepped, parallel, atol=FP64, rtol=FP64)
    assert found[0][0].abs().min() > 0


@pytest.mark.parametrize("memory", ["linear", "titans", "rwkv7", "memora"])
def test_bf16_weights_and_autocast(memory: str) -> None:
    """Against fp32 with the same rounded weights; the cache is kept in fp32 where it sums."""
    layer = made(memory=memory, aggregate="grm", heads=2, dtype=torch.bfloat16)
    exact, x = copy.deepcopy(layer).float(), tokens(dtype=torch.bfloat16)
    wanted = exact(x.float())
    with torch.no_grad():
        whole, stepped = layer(x), in_pieces(layer, x, PIECES[0])
        with torch.autocast("cpu", torch.bfloat16):
            cast, cast_stepped = exact(x.float()), in_pieces(exact, x.float(), PIECES[0])
    assert (whole.dtype, stepped.dtype) == (torch.bfloat16, torch.bfloat16)
    for y in (whole, stepped, cast, cast_stepped):
        assert ((y.float() - wanted).square().mean() / wanted.square().mean()).sqrt() < BF16

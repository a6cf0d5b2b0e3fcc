"""A layer at toy size, what it is met by, and its run in pieces."""

import io
from itertools import cycle
from itertools import pairwise as neighbours
from typing import Any

import torch
from torch import Tensor

from mclab.config.model import RULES
from mclab.nn import Cache, MemoryCaching
from tests.covering import Row, pairwise
from tests.layers import comparable
from tests.registries import axes, words

DIM, B, T = 8, 2, 14
#: Two prefills, one of them off every segment's end, and pieces of one token and of several.
PIECES = ((0, 8, 9, 10, 13, 14), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14))
LISTED = {"constant": (), "log": (), "listed": (2, 4, 3)}


def product_axes() -> dict[str, list[str]]:
    """What whole, in pieces and token by token have to be the same over."""
    return axes("memory", "init", "segmentation") | {"aggregate": words("aggregate", but=("none",))}


def other_axes() -> dict[str, list[Any]]:
    """What each of their combinations is met by, in turn."""
    return axes("gate", "gate_activation", "connector", "pool", "pool_of", "decay_to", "memory_norm") | {
        "depth": [1, 2],
        "chunk": [1, 2, 16],
        "renormalise": [True, False],
        "k": [1, 2, 9],
        "scale": [None, 0.7],
        "heads": [1, 2],
        "conv": [0, 4],
        "position": ["none", "rotary"],
        "qk_norm": [True, False],
        "out_gate": [False, True],
        "slots": [1, 2, 64],
    }


def sensible(case: Row) -> Row:
    """What the config refuses, put right; queries and keys of unit length where a step grows with theirs."""
    case = comparable(case)
    deep = RULES[case["memory"]].may_be_deep and case["depth"] > 1
    if deep and (case["aggregate"], case["gate"]) == ("soup", "none"):
        case = case | {"gate": "input"}
    return case | {"qk_norm": True} if RULES[case["memory"]].erases or RULES[case["memory"]].descends else case


def cases(rows: list[Row]) -> list[Row]:
    """These rows of `product_axes`, and each memory without a cache, where init and segmentation mean nothing; with the
    other keys in turn."""
    uncached = {"aggregate": "none", "init": "restart", "segmentation": "constant"}
    turns = cycle(pairwise(other_axes()))
    return [
        sensible({**row, **next(turns)}) for row in [*rows, *({"memory": each, **uncached} for each in words("memory"))]
    ]


def made(seed: int = 0, dtype: torch.dtype = torch.float64, **keys: Any) -> MemoryCaching:
    """Rates far from their starts, so that no product of them is near 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    segmentation = {"segment_lengths": LISTED[keys.get("segmentation", "constant")]}
    layer = MemoryCaching(DIM, **{"segment": 3, **segmentation, **keys}, generator=generator)
    for name, value in layer.named_parameters():
        if name.endswith("bias"):
            value.data.copy_(torch.randn(value.shape, generator=generator))
    return layer.to(dtype=dtype)


def tokens(length: int = T, dtype: torch.dtype = torch.float64, batch: int = B) -> Tensor:
    return torch.randn(batch, length, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)


def on_disk(layer: MemoryCaching, cache: Cache) -> Cache:
    file = io.BytesIO()
    torch.save(cache.state_dict(), file)
    file.seek(0)
    return layer.load_cache(torch.load(file, weights_only=True))


def in_pieces(layer: MemoryCaching, x: Tensor, ends: tuple[int, ...], disk_at: int | None = None) -> Tensor:
    cache, outputs = layer.empty_cache(len(x)), []
    for first, end in neighbours(ends):
        y, cache = layer(x[:, first:end], cache=cache)
        assert cache.tokens == end
        outputs.append(y)
        if end == disk_at:
            cache = on_disk(layer, cache)
    return torch.cat(outputs, 1)

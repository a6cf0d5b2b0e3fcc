"""What a sequence leaves behind for its next token, as named tensors and back (`torch.save`, safetensors)."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from mclab.caching.kept import Kept
from mclab.caching.progress import Progress, Writer
from mclab.memories.base import State
from mclab.models.attention import AttentionPast
from mclab.models.hybrid import HybridPast
from mclab.models.memory import MemoryPast

Past = MemoryPast | HybridPast


def to_tensors(past: Past) -> dict[str, Tensor]:
    """Each tensor by its dotted place; whole numbers as tensors of one number."""
    return dict(_flat("", past))


def from_tensors(found: Mapping[str, Tensor], hybrid: bool) -> Past:
    """What `to_tensors` was given. Raises `KeyError` where something is missing."""
    if not hybrid:
        return _memory(found, "")
    tokens, taps = int(found["attention.tokens"]), found.get("attention.taps")
    attention = AttentionPast(tokens, taps, found.get("attention.k"), found.get("attention.v"))
    return HybridPast(_memory(found, "memory."), attention)


def _flat(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, int):
        yield name, torch.tensor(value)
    elif value is not None:
        for word, part in _parts(value):
            yield from _flat(f"{name}.{word}".lstrip("."), part)


def _parts(value: Any) -> Iterator[tuple[int | str, Any]]:
    if isinstance(value, Kept | tuple):
        yield from enumerate(value.rows if isinstance(value, Kept) else value)
    else:
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))


def _memory(found: Mapping[str, Tensor], name: str) -> MemoryPast:
    own, writers = f"{name}progress.", list[Writer]()
    while f"{own}writers.{len(writers)}.first" in found:
        writers.append(_writer(found, f"{own}writers.{len(writers)}."))
    rows = _numbered(found, f"{own}kept")
    kept = Kept.of(*rows) if rows else Kept()
    tokens, block = int(found[f"{own}tokens"]), int(found[f"{own}block"])
    return MemoryPast(found.get(f"{name}taps"), Progress(tokens, block, tuple(writers), kept))


def _writer(found: Mapping[str, Tensor], name: str) -> Writer:
    state = None
    if f"{name}state.place" in found:
        parts = {f.name: _numbered(found, f"{name}state.{f.name}") for f in fields(State) if f.name != "place"}
        state = State(place=int(found[f"{name}state.place"]), **parts)
    return Writer(int(found[f"{name}first"]), int(found[f"{name}tokens"]), state, found.get(f"{name}total"))


def _numbered(found: Mapping[str, Tensor], name: str) -> tuple[Tensor, ...]:
    rows = list[Tensor]()
    while f"{name}.{len(rows)}" in found:
        rows.append(found[f"{name}.{len(rows)}"])
    return tuple(rows)

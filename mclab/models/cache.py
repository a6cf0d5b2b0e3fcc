"""The cache of a public layer (`mclab.nn`): the state of sequences, its size, and its form as named tensors.

Users hold a `Cache`; `to_tensors` and `from_tensors` convert it for `torch.save` and safetensors. The names of these
tensors are fields of the classes that they come from: after a field is renamed, stored caches cannot be read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from mclab.caching.decoding_state import DecodingState, KeptMemories, Writer
from mclab.memories.base import State
from mclab.models.attention import AttentionPast
from mclab.models.hybrid import HybridPast
from mclab.models.memory import MemoryPast

Past = MemoryPast | HybridPast


@dataclass(frozen=True)
class Cache:
    """The state of sequences in one layer, from which their next tokens continue.

    A call of the layer with a cache returns a new one and does not change the old one, so that several continuations
    can start from the same cache.
    """

    batch: int
    """The number of sequences."""
    key: int
    """A number computed from the keys of the layer; a layer with other keys refuses the cache."""
    past: Past

    @property
    def memory(self) -> MemoryPast:
        """The state of the memory, without the state of a hybrid's attention."""
        return self.past.memory if isinstance(self.past, HybridPast) else self.past

    @property
    def tokens(self) -> int:
        """The number of tokens of each sequence so far."""
        return self.memory.progress.tokens

    @property
    def segments(self) -> int:
        """The number of kept memories that the next token can read."""
        return self.memory.progress.kept.count

    @property
    def floats(self) -> int:
        """The state size of one sequence in floats, kept memories included."""
        return sum(each.numel() for each in to_tensors(self.past).values() if each.is_floating_point()) // self.batch

    @property
    def cached_floats(self) -> int:
        """The part of the state size that belongs to kept memories; it grows by one memory per segment."""
        rows = self.memory.progress.kept.rows
        return sum(each.numel() for each in rows if each.is_floating_point()) // self.batch

    def cut(self, segments: int) -> "Cache":
        """Return a cache with only the newest `segments` kept memories, so that older ones can be freed.

        If there are no more than that, all are kept. With `segmentation="log"` a bucket that becomes complete later
        contains the dropped segments again. Raises `ValueError` if `segments` is not a whole number from 0 on.
        """
        whole("segments", segments, 0)
        progress = self.memory.progress
        memory = replace(self.memory, progress=replace(progress, kept=progress.kept.last(segments)))
        past = replace(self.past, memory=memory) if isinstance(self.past, HybridPast) else memory
        return replace(self, past=past)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "Cache":
        """Return the cache on another device, or with floating-point tensors of another dtype."""
        return self._mapped(lambda x: x.to(device=device, dtype=dtype if x.is_floating_point() else None))

    def detach(self) -> "Cache":
        """Return the cache without the autograd graph of earlier tokens."""
        return self._mapped(Tensor.detach)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the cache as named tensors, for `torch.save` and `MemoryCaching.load_cache`."""
        return {"batch": torch.tensor(self.batch), "key": torch.tensor(self.key), **to_tensors(self.past)}

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> "Cache":
        changed = {name: change(each) if each.dim() else each for name, each in to_tensors(self.past).items()}
        return replace(self, past=from_tensors(changed, isinstance(self.past, HybridPast)))


def to_tensors(past: Past) -> dict[str, Tensor]:
    """Return all tensors of `past` by their dotted field names; a whole number becomes a tensor of one number."""
    return dict(_flat("", past))


def from_tensors(found: Mapping[str, Tensor], hybrid: bool) -> Past:
    """Return the `past` that `to_tensors` turned into `found`. Raises `KeyError` if a tensor is missing."""
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
        for key, part in _parts(value):
            yield from _flat(f"{name}.{key}".lstrip("."), part)


def _parts(value: Any) -> Iterator[tuple[int | str, Any]]:
    if isinstance(value, KeptMemories | tuple):
        yield from enumerate(value.rows if isinstance(value, KeptMemories) else value)
    else:
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))


def _memory(found: Mapping[str, Tensor], name: str) -> MemoryPast:
    own, writers = f"{name}progress.", list[Writer]()
    while f"{own}writers.{len(writers)}.first" in found:
        writers.append(_writer(found, f"{own}writers.{len(writers)}."))
    rows = _numbered(found, f"{own}kept")
    kept = KeptMemories.of(*rows) if rows else KeptMemories()
    tokens, block = int(found[f"{own}tokens"]), int(found[f"{own}block"])
    return MemoryPast(found.get(f"{name}taps"), DecodingState(tokens, block, tuple(writers), kept))


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


def whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise `ValueError`, with the argument's `name`, unless `value` is a whole number from `least` to `most`."""
    right = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not right or (most is not None and value > most):  # type: ignore[operator]
        to = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name}: must be a whole number {to}, got {value!r}")

"""The cache of a public layer (`mclab.nn`): what sequences leave behind, its size, and what can be done with it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mclab.models.hybrid import HybridPast
from mclab.models.memory import MemoryPast
from mclab.models.stored import Past, from_tensors, to_tensors


@dataclass(frozen=True)
class Cache:
    """What sequences leave behind in one layer. A call with it returns another one and leaves this as it was, so that
    several continuations may start from the same cache."""

    batch: int
    """Sequences side by side."""
    key: int
    """Of which layer's keys it is: another refuses it."""
    past: Past

    @property
    def memory(self) -> MemoryPast:
        """The part without a hybrid's attention."""
        return self.past.memory if isinstance(self.past, HybridPast) else self.past

    @property
    def tokens(self) -> int:
        """Tokens of each sequence so far."""
        return self.memory.progress.tokens

    @property
    def segments(self) -> int:
        """Kept memories that the next token may read."""
        return self.memory.progress.kept.count

    @property
    def floats(self) -> int:
        """Numbers kept for one sequence, in all."""
        return sum(each.numel() for each in to_tensors(self.past).values() if each.is_floating_point()) // self.batch

    @property
    def cached_floats(self) -> int:
        """Those of them that belong to kept memories, and so grow by one memory a segment."""
        rows = self.memory.progress.kept.rows
        return sum(each.numel() for each in rows if each.is_floating_point()) // self.batch

    def cut(self, segments: int) -> "Cache":
        """With the newest `segments` of the kept memories alone; the rest is freed. All stay where there are no more.

        With `segmentation="log"` a bucket that is complete later holds what was dropped again.
        Raises `ValueError` for what is no whole number from 0 on.
        """
        whole("segments", segments, 0)
        progress = self.memory.progress
        memory = replace(self.memory, progress=replace(progress, kept=progress.kept.last(segments)))
        past = replace(self.past, memory=memory) if isinstance(self.past, HybridPast) else memory
        return replace(self, past=past)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "Cache":
        """On another device, or with its floats in another type."""
        return self._mapped(lambda x: x.to(device=device, dtype=dtype if x.is_floating_point() else None))

    def detach(self) -> "Cache":
        """Without the way back to earlier tokens' gradients."""
        return self._mapped(Tensor.detach)

    def state_dict(self) -> dict[str, Tensor]:
        """Named tensors, for `torch.save` and `MemoryCaching.load_cache`."""
        return {"batch": torch.tensor(self.batch), "key": torch.tensor(self.key), **to_tensors(self.past)}

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> "Cache":
        changed = {name: change(each) if each.dim() else each for name, each in to_tensors(self.past).items()}
        return replace(self, past=from_tensors(changed, isinstance(self.past, HybridPast)))


def whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise `ValueError` that names the argument, unless it is a whole number between these."""
    right = isinstance(value, int) and not isinstance(value, bool) and value >= least
    if not right or (most is not None and value > most):  # type: ignore[operator]
        to = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name}: needs a whole number {to}, got {value!r}")

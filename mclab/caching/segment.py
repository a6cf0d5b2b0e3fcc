"""Where a sequence is cut, and which segments a token sees.

Columns of every [.., T, N] tensor in this package are segments: t's own column stands for its online memory, earlier
columns for kept memories, later ones are not visible.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ConstantSegments:
    """Segments of `segment` tokens; the last may be short (the caller pads, so that tensors stay rectangular)."""

    length: int
    segment: int

    @property
    def count(self) -> int:
        """Number of segments N."""
        return -(-self.length // self.segment)

    @property
    def padding(self) -> int:
        """Tokens to add behind the sequence so that every segment is full. Nothing before them can see them."""
        return self.count * self.segment - self.length

    def own(self, device: torch.device) -> Tensor:
        """[T, N], padded: True in the column of t's own segment."""
        return self._block(device)[:, None] == torch.arange(self.count, device=device)

    def visible(self, device: torch.device) -> Tensor:
        """[T, N], padded: True for t's own segment and all before it."""
        return self._block(device)[:, None] >= torch.arange(self.count, device=device)

    def _block(self, device: torch.device) -> Tensor:
        return torch.arange(self.count * self.segment, device=device) // self.segment

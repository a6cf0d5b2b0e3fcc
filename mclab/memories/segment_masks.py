"""Constant matrices of zeros and ones: which blocks a memory holds, and which memories a token sees.

Shapes: T time, N blocks, columns as in caching/segment.py.
"""

import torch
from torch import Tensor

from mclab.constants import once
from mclab.memories.base import Segments


@once
def holds(segments: Segments, restarts: bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [kept, N]: 1 if a kept memory holds a block's writes; without restarts it holds earlier ones too."""
    return segments.holds(restarts, device).to(dtype)


@once
def earlier_of_runs(segments: Segments, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [N, N]: row n is 1 for the blocks before n in the run of block n."""
    run_N = segments.run_of_block(device)
    return (run_N[:, None] == run_N).tril(-1).to(dtype)


@once
def visible(segments: Segments, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return [T, columns]: 1 for the memories that t sees."""
    return segments.visible(device).to(dtype)

"""Which blocks of a sequence a memory holds and what a token sees, as constant matrices of zeros and ones.

Shapes: T time, N blocks, columns as in caching/segment.py.
"""

import torch
from torch import Tensor

from mclab.constants import once
from mclab.memories.base import Segments


@once
def holds(segments: Segments, restarts: bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[kept, N]: one where a kept memory holds a block's writes; all earlier ones too where nothing restarts."""
    return segments.holds(restarts, device).to(dtype)


@once
def earlier_of_runs(segments: Segments, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[N, N]: one for the earlier blocks of each block's run."""
    run_N = segments.run_of_block(device)
    return (run_N[:, None] == run_N).tril(-1).to(dtype)


@once
def visible(segments: Segments, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[T, columns]: one for what t sees."""
    return segments.visible(device).to(dtype)

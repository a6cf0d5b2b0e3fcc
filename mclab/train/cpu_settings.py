"""Change settings of a process that trains on the CPU: malloc keeps freed memory, denormals are flushed to zero."""

import ctypes
from functools import cache

import torch

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_KEEP, _PAD = 2**31 - 1, 2**26


@cache
def prepare(kind: str) -> None:
    """Prepare this process for training on a device of type `kind`: on the CPU, keep freed memory and flush denormals.

    The tensors of a step take a megabyte each. glibc returns such blocks to the system when they are freed, which would
    cost every step some hundred page faults (a tenth of its time). A saturated softmax leaves gradients of 1e-40, with
    which a CPU computes many times more slowly.
    """
    if kind != "cpu":
        return
    torch.set_flush_denormal(True)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # only glibc has it
    if mallopt is not None:
        for option, value in ((_M_MMAP_THRESHOLD, _KEEP), (_M_TRIM_THRESHOLD, _KEEP), (_M_TOP_PAD, _PAD)):
            mallopt(option, value)

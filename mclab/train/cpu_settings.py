"""Settings of a process that trains on the CPU: malloc keeps freed memory, denormals are flushed to zero."""

import ctypes
from functools import cache

import torch

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_KEEP, _PAD = 2**31 - 1, 2**26


@cache
def prepare(kind: str) -> None:
    """Prepare this process once for training on a device of this kind: on the CPU, keep freed memory, flush denormals.

    The tensors of a step are a megabyte each; glibc hands such blocks back to the system when they are freed, and every
    step then pays some hundred page faults for them (a tenth of its time). A saturated softmax leaves gradients of
    1e-40, on which a CPU spends many times its usual time.
    """
    if kind != "cpu":
        return
    torch.set_flush_denormal(True)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc alone has it
    if mallopt is not None:
        for option, value in ((_M_MMAP_THRESHOLD, _KEEP), (_M_TRIM_THRESHOLD, _KEEP), (_M_TOP_PAD, _PAD)):
            mallopt(option, value)

"""Before a Triton kernel computes on a device for the first time, it is compared there with torch's form.

The case is small. What a kernel was compiled for is what is checked: other widths are other kernels. The answer holds
for the process; a kernel that is off, or does not run, is not used there, and one line says so.
"""

import sys
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from mclab.kernels import dispatch

#: The most that a result may differ, by relative root mean square, from torch's in fp64: products in fp32 round to
#: 1e-7 and sums of a few hundred to a few times that, which a norm's small root may grow; bf16 rounds to 4e-3, tf32 to
#: 5e-4. A wrong index is off by about one.
TOLERANCE = {"fp64": 1e-9, "fp32": 1e-4, "bf16": 5e-2}
#: The kernel's results and gradients, and torch's, in the same order.
Compare = Callable[[], tuple[Sequence[Tensor], Sequence[Tensor]]]
_seen: dict[Hashable, bool] = {}


def trusted(rule: str, device: torch.device, precision: str, of: Hashable, compare: Compare) -> bool:
    """Whether the kernel of a rule may be used; `of` is what it is compiled for. Compares the first time alone."""
    key = (rule, str(device), precision, of)
    if key not in _seen:
        reason = _wrong(precision, compare)
        if reason:
            print(f"mclab: on {device} torch's form of {rule} is used: its Triton kernel {reason}", file=sys.stderr)
            dispatch.distrust(rule, str(device), f"its Triton kernel {reason}")
        _seen[key] = not reason
    return _seen[key]


def _wrong(precision: str, compare: Compare) -> str:
    """What is wrong with it; empty where nothing is."""
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            found, right = compare()
    except Exception as error:  # whatever a compiler or a driver raises: it cannot be used
        return f"does not run there ({type(error).__name__}: {error})".splitlines()[0][:300]
    off = max(relative_rms(own, other) for own, other in zip(found, right, strict=True))
    most = TOLERANCE[precision]
    return "" if off <= most else f"is off by {off:.1e} in a small case, relative RMS, where {most:.0e} is the most"


def relative_rms(found: Tensor, right: Tensor) -> float:
    """The root mean square of their difference over that of `right`, in fp64; infinite where a number is none."""
    found, right = found.detach().double(), right.detach().double()
    off, size = (found - right).square().mean().sqrt().item(), right.square().mean().sqrt().item()
    if off != off:
        return float("inf")
    return off / size if size else off

"""The self-check compares a Triton kernel with torch's form on a device before the kernel is used there.

The comparison is a small case, computed once in a process for every set of compile-time arguments, since other widths
are other kernels. A kernel that is inaccurate, or does not run, is not used on that device, and one line says so.
"""

import sys
from collections.abc import Callable, Hashable, Sequence

import torch
from torch import Tensor

from mclab.kernels import dispatch

#: The most that a result may differ from torch's in fp64, as relative root mean square. Products in fp32 round to 1e-7,
#: and sums of a few hundred products to a few times that, which a norm with a small root may enlarge; bf16 rounds to
#: 4e-3, tf32 to 5e-4. A wrong index makes a difference of about 1.
TOLERANCE = {"fp64": 1e-9, "fp32": 1e-4, "bf16": 5e-2}
#: A function that returns the results and gradients of the kernel, and those of torch's form in the same order.
Compare = Callable[[], tuple[Sequence[Tensor], Sequence[Tensor]]]
_seen: dict[Hashable, bool] = {}


def trusted(rule: str, device: torch.device, precision: str, of: Hashable, compare: Compare) -> bool:
    """Return whether the kernel of `rule` passed its self-check, so that it may be used.

    `of` are the arguments that it is compiled for. Only the first call with the same arguments compares.
    """
    key = (rule, str(device), precision, of)
    if key not in _seen:
        reason = _wrong(precision, compare)
        if reason:
            print(f"mclab: on {device} torch's form of {rule} is used: its Triton kernel {reason}", file=sys.stderr)
            dispatch.distrust(rule, str(device), f"its Triton kernel {reason}")
        _seen[key] = not reason
    return _seen[key]


def _wrong(precision: str, compare: Compare) -> str:
    """Return what is wrong with the kernel, for a message; empty if nothing is."""
    try:
        with torch.enable_grad(), torch.random.fork_rng(devices=[]):
            found, right = compare()
    except Exception as error:  # whatever a compiler or a driver raises: it cannot be used
        return f"does not run on this device ({type(error).__name__}: {error})".splitlines()[0][:300]
    off = max(relative_rms(own, other) for own, other in zip(found, right, strict=True))
    most = TOLERANCE[precision]
    return (
        ""
        if off <= most
        else f"has a relative RMS error of {off:.1e} in a small case, where at most {most:.0e} is allowed"
    )


def relative_rms(found: Tensor, right: Tensor) -> float:
    """Return the root mean square of `found - right` over that of `right`, in fp64; infinite if it is NaN."""
    found, right = found.detach().double(), right.detach().double()
    off, size = (found - right).square().mean().sqrt().item(), right.square().mean().sqrt().item()
    if off != off:
        return float("inf")
    return off / size if size else off

"""Parameters with a leading replica axis R: the initial values of each replica's slice, and how they are drawn.

`parameter` makes an uninitialised parameter; `initialise` fills all parameters of a module. Shapes: R replicas; a
parameter is [R, *shape], and replica r's slice depends only on this replica's seed and on the parameter's name.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Normal:
    """Initial values are independent and normal with this standard deviation."""

    std: float


@dataclass(frozen=True)
class Constant:
    """All initial values are equal."""

    value: float


@dataclass(frozen=True)
class Values:
    """Initial values are those in `rows`, the rows of a matrix."""

    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Own:
    """Initial values are set by the module that holds the parameter, a `StartsItself`."""


Start = Normal | Constant | Values | Own


class ReplicaParameter(nn.Parameter):
    """A parameter [R, *shape] that knows how its slices are initialised and whether weight decay applies to it."""

    init: Start
    decays: bool

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReplicaParameter":
        """Copy the parameter as torch does, together with `init` and `decays`."""
        if id(self) in memo:
            return cast("ReplicaParameter", memo[id(self)])
        made = memo[id(self)] = ReplicaParameter(self.detach().clone(), self.requires_grad)
        made.init, made.decays = self.init, self.decays
        return made


class StartsItself(nn.Module, ABC):
    """A module that fills those of its parameters whose `init` is `Own`."""

    @abstractmethod
    def start(self, seeds: Sequence[int]) -> None:
        """Fill replica r of these parameters, using only seeds[r]."""


def parameter(
    replicas: int, *shape: int, init: Start, decays: bool | None = None, dtype: torch.dtype | None = None
) -> ReplicaParameter:
    """Return an uninitialised parameter [R, *shape]; `initialise` fills it.

    By default weight decay applies to matrices and not to vectors.
    """
    made = ReplicaParameter(torch.empty(replicas, *shape, dtype=dtype))
    made.init, made.decays = init, len(shape) > 1 if decays is None else decays
    return made


def initialise(module: nn.Module, seeds: Sequence[int]) -> None:
    """Draw replica r of every parameter on the CPU from hash(seeds[r], parameter name).

    A `StartsItself` module gets hash(seeds[r], name of the module). The initial values of a parameter depend only on
    its name and shape: another layer in the model does not change them, and CPU and CUDA start with the same values.
    """
    for name, values in module.named_parameters():
        assert isinstance(values, ReplicaParameter), name
        if not isinstance(values.init, Own):
            for replica, seed in enumerate(seeds):
                values.data[replica] = _draw(values.init, values.shape[1:], seed, name)
    for name, part in module.named_modules():
        if isinstance(part, StartsItself):
            part.start([seed_of(seed, name) for seed in seeds])


def seed_of(seed: int, name: str) -> int:
    """Return the seed of torch's generator for the initial values of one parameter or module, from its `name`."""
    digest = hashlib.sha256(f"init/{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def _draw(init: Start, shape: torch.Size, seed: int, name: str) -> Tensor:
    if isinstance(init, Constant):
        return torch.full(shape, init.value)
    if isinstance(init, Values):
        return torch.tensor(init.rows)
    assert isinstance(init, Normal)
    generator = torch.Generator().manual_seed(seed_of(seed, name))
    return init.std * torch.randn(shape, generator=generator, dtype=torch.float32)

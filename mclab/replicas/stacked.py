"""A part of the user's own, once for each replica: one template, and the weights of all replicas, stacked.

The user's code knows no replicas. It runs once for each, with that replica's weights in place.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from mclab.config.own import Part
from mclab.own.found import make_part, seeded
from mclab.own.kept import kept
from mclab.replicas.parameters import Own, StartsItself, parameter

T = TypeVar("T")


class Stacked(StartsItself):
    """R parts as one; what is no torch module has no weights.

    Each replica's parameters and buffers start as the part's own code starts them, from the replica's seed. Matrices
    decay and vectors do not, as everywhere; parameters that want no gradient are kept like buffers.
    """

    def __init__(self, replicas: int, make: Callable[[], Any]) -> None:
        super().__init__()
        self.replicas, self._make = replicas, make
        # As long as a call changes nothing of the process, only the first is watched in full.
        self._seen = self._careless = False
        template = self._made(0)
        # In a tuple torch does not see it: only the stacked weights are trained, moved and saved.
        self.hidden = (_Within(template) if isinstance(template, nn.Module) else None, template)
        self.shapes = {name: value.shape for name, value, _ in tensors(template)}
        self.own = nn.Module()
        for name, value, trained in tensors(template):
            _put(self.own, name, value.detach(), replicas, trained)

    @property
    def template(self) -> Any:
        """The part itself, to be asked what it has; its own weights are nobody's."""
        return self.hidden[1]

    def start(self, seeds: Sequence[int]) -> None:
        """Make the part once for each seed and take over what it starts from."""
        stacked = self._stacked()
        for replica, seed in enumerate(seeds):
            for name, value, _ in tensors(self._made(seed)):
                stacked[name].data[replica] = value.detach()

    def each(self, act: Callable[[Any, int], T]) -> list[T]:
        """What `act` gives of the part with each replica's weights in it, and of the replica's number."""
        if torch.compiler.is_compiling():
            return self._each(act)
        changed = list[str]()
        with kept(changed.extend, quick=self._seen and not self._careless):
            found = self._each(act)
        self._seen, self._careless = True, self._careless or bool(changed)
        return found

    def _each(self, act: Callable[[Any, int], T]) -> list[T]:
        within, template = self.hidden
        if within is None:
            return [act(template, replica) for replica in range(self.replicas)]
        stacked, found = self._stacked(), []
        for replica in range(self.replicas):
            weights = {f"part.{name}": values[replica].view(self.shapes[name]) for name, values in stacked.items()}
            found.append(functional_call(within, weights, (act, replica)))
        return found

    def _made(self, seed: int) -> Any:
        with seeded(seed):
            return self._make()

    def _stacked(self) -> dict[str, Tensor]:
        return {**dict(self.own.named_parameters()), **dict(self.own.named_buffers())}


def stacked(replicas: int, part: Part, width: int, heads: int) -> Stacked:
    """A rule, gate or aggregation of the user's own, for a model of this width and so many heads."""
    given = {"dim": width, "heads": heads, "width": width // heads}
    return Stacked(replicas, lambda: make_part(part, given))


class _Within(nn.Module):
    """A module whose methods, all of them, run with weights that are not its own."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, act: Callable[[Any, int], Any], replica: int) -> Any:
        return act(self.part, replica)


def tensors(part: Any) -> Iterator[tuple[str, Tensor, bool]]:
    """Name and value of everything that a module holds, and whether it is trained; what is shared comes once."""
    if isinstance(part, nn.Module):
        for name, value in part.named_parameters():
            yield name, value, value.requires_grad
        yield from ((name, value, False) for name, value in part.named_buffers())


def _put(root: nn.Module, name: str, value: Tensor, replicas: int, trained: bool) -> None:
    """Stack a tensor under its dotted name. A pack flattens what a replica has, so that a scalar needs an axis."""
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root.get_submodule(part)
    shape = value.shape or (1,)
    if trained:
        root.register_parameter(last, parameter(replicas, *shape, init=Own(), dtype=value.dtype))
    else:
        root.register_buffer(last, value.expand(replicas, *shape).clone())

"""Run a part of the user's own once for each replica, with the weights of that replica.

The user's code does not know about replicas. The weights of all replicas are stacked; one template of the part runs
with each replica's weights in turn.
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
    """R copies of a user's part as one module. A part that is not a torch module has no weights.

    The part's own code sets the initial parameters and buffers of each replica, from the replica's seed. Weight decay
    applies to matrices and not to vectors, as everywhere. Parameters that need no gradient are stored as buffers.
    """

    def __init__(self, replicas: int, make: Callable[[], Any]) -> None:
        super().__init__()
        self.replicas, self._make = replicas, make
        # Only the first call is checked in full, as long as no call changes the state of the process.
        self._seen = self._careless = False
        template = self._made(0)
        # Torch does not see a module in a tuple, so only the stacked weights are trained, moved and saved.
        self.hidden = (_Within(template) if isinstance(template, nn.Module) else None, template)
        self.shapes = {name: value.shape for name, value, _ in tensors(template)}
        self.own = nn.Module()
        for name, value, trained in tensors(template):
            _put(self.own, name, value.detach(), replicas, trained)

    @property
    def template(self) -> Any:
        """The part itself, to look up its attributes. No replica uses the weights that it holds."""
        return self.hidden[1]

    def start(self, seeds: Sequence[int]) -> None:
        """Make the part once for each seed, and copy its initial weights to the replica with that seed."""
        stacked = self._stacked()
        for replica, seed in enumerate(seeds):
            for name, value, _ in tensors(self._made(seed)):
                stacked[name].data[replica] = value.detach()

    def each(self, act: Callable[[Any, int], T]) -> list[T]:
        """Return [act(part, replica) for each replica], where the part has the weights of that replica."""
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
    """Stack a rule, gate or aggregation of the user's own, for a model with these `width` and `heads`."""
    given = {"dim": width, "heads": heads, "width": width // heads}
    return Stacked(replicas, lambda: make_part(part, given))


class _Within(nn.Module):
    """A wrapper through which `functional_call` runs any method of a part with other weights."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, act: Callable[[Any, int], Any], replica: int) -> Any:
        return act(self.part, replica)


def tensors(part: Any) -> Iterator[tuple[str, Tensor, bool]]:
    """Yield (name, value, whether it is trained) for every parameter and buffer in `part`; a shared one comes once."""
    if isinstance(part, nn.Module):
        for name, value in part.named_parameters():
            yield name, value, value.requires_grad
        yield from ((name, value, False) for name, value in part.named_buffers())


def _put(root: nn.Module, name: str, value: Tensor, replicas: int, trained: bool) -> None:
    """Register the stacked form of a tensor in `root` under its dotted name.

    A scalar gets an axis, because a pack flattens the axes of each replica.
    """
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

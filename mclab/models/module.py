"""A user's own torch module as a mixer, run once for each replica.

Shapes: R replicas, B batch, T time, D model width.

See docs/equations.md#your-own-module.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from mclab.config.model import Mixer, ModelConfig, ModuleMixer
from mclab.layers import Own, StartsItself, parameter
from mclab.models.found import make, seeded
from mclab.models.kept import kept


class Modules(StartsItself):
    """R modules as one: a template without weights of its own, and the weights of all replicas, stacked.

    Each replica's parameters and buffers start as the module's own code starts them, from the replica's seed. Matrices
    decay and vectors do not, as everywhere; parameters that want no gradient are kept like buffers.
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        assert isinstance(mixer, ModuleMixer)
        self.mixer, self.dim, self.length = mixer, model.dim, length
        # As long as a call changes nothing of the process, only the first is watched in full.
        self._seen = self._careless = False
        template = self._made(0)
        # In a tuple torch does not see it: only the stacked weights are trained, moved and saved.
        self.hidden = (template,)
        self.shapes = {name: value.shape for name, value, _ in _tensors(template)}
        self.own = nn.Module()
        for name, value, trained in _tensors(template):
            _put(self.own, name, value.detach(), replicas, trained)

    def start(self, seeds: Sequence[int]) -> None:
        """Make the module once for each seed and take over what it starts from."""
        stacked = self._stacked()
        for replica, seed in enumerate(seeds):
            for name, value, _ in _tensors(self._made(seed)):
                stacked[name].data[replica] = value.detach()

    def forward(self, x_RBTD: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return self._called(x_RBTD)
        changed = list[str]()
        with kept(changed.extend, quick=self._seen and not self._careless):
            y_RBTD = self._called(x_RBTD)
        self._seen, self._careless = True, self._careless or bool(changed)
        return y_RBTD

    def _called(self, x_RBTD: Tensor) -> Tensor:
        (template,), stacked = self.hidden, self._stacked()
        outputs = []
        for replica, x_BTD in enumerate(x_RBTD):
            weights = {name: values[replica].view(self.shapes[name]) for name, values in stacked.items()}
            outputs.append(functional_call(template, weights, (x_BTD,)))
        return torch.stack(outputs)

    def _made(self, seed: int) -> nn.Module:
        with seeded(seed):
            return make(self.mixer, self.dim, self.length)

    def _stacked(self) -> dict[str, Tensor]:
        return {**dict(self.own.named_parameters()), **dict(self.own.named_buffers())}


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor, bool]]:
    """Name and value of everything that a module holds, and whether it is trained; what is shared comes once."""
    for name, value in module.named_parameters():
        yield name, value, value.requires_grad
    yield from ((name, value, False) for name, value in module.named_buffers())


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

"""This module offers Memory Caching as an ordinary torch module with a cache, for use in any model (docs/library.md).

layer = mclab.nn.MemoryCaching(256, heads=4, memory="titans", aggregate="ssc")
y = layer(x)                                 # [B, T, D] to [B, T, D], causal
cache = layer.empty_cache(batch=2)
y, cache = layer(x[:, :100], cache=cache)    # the same outputs, in pieces of any length
"""

import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never, overload

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import Module

from mclab.caching.gate import InputGate
from mclab.config.error import ConfigError, did_you_mean
from mclab.config.fields import is_path
from mclab.config.model import MemoryMixer, ModelConfig, Position
from mclab.config.model.cache import (
    Aggregate,
    Connector,
    DecayTo,
    Gate,
    GateActivation,
    Hybrid,
    Init,
    MemoryNorm,
    Pool,
    PoolOf,
    Route,
    Segmentation,
)
from mclab.config.parse import parse_run
from mclab.models.cache import Cache, Past, from_tensors, whole
from mclab.models.hybrid import HYBRIDS, HybridPast, MemoryAsGate, MemoryAsLayer
from mclab.models.memory import CachedMemory, MemoryPast
from mclab.replicas.parameters import initialise

if TYPE_CHECKING:
    from mclab.config.run import RunConfig
    from mclab.models.lm import LM

__all__ = ["Cache", "MemoryCaching"]

#: The most slots that an input gate may have.
MOST_SLOTS = 2**20
#: Keys for the user's own parts. They work in a grid, but not in this layer.
OWN = ("memory_args", "gate_args", "aggregate_args", "versions")


class MemoryCaching(Module):
    """A recurrent memory with a cache of its segments (arXiv 2602.24281), as a layer [B, T, D] to [B, T, D].

    Every argument from `memory` to `window` is the key of the same name under `model.mixer` of a grid (`mclab keys`,
    docs/equations.md#caching); `heads`, `conv` (kernel size of the short convolution) and `position` ("none" or
    "rotary") are the keys under `model`. Further arguments: `slots` is the number of segments that `gate="input"`
    distinguishes (all later segments use the last slot); `gain` is a factor on the initial output projection;
    `generator` draws the initial parameters (by default torch's global generator); `device` and `dtype`.

    In an ablation `route` depends on the training step. Here "annealed" and "explore" act as "straight_through": the
    output is that of ssc, the gradient is that of reading all memories. Without gradients ssc reads only k memories.
    Parameters have a leading axis of size 1; `load_state_dict` takes them with or without it.
    Raises `ValueError`, which names the argument and its allowed values, and `TypeError` for an unknown argument.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        memory: str = "linear",
        aggregate: Aggregate = "grm",
        gate: Gate = "context",
        segment: int = 64,
        *,
        depth: int = 2,
        chunk: int = 16,
        max_lr: float = 1.0,
        decay_to: DecayTo = "init",
        memory_norm: MemoryNorm = "rms",
        segmentation: Segmentation = "constant",
        segment_lengths: Sequence[int] = (),
        gate_activation: GateActivation = "softmax",
        connector: Connector = "own",
        init: Init = "restart",
        pool: Pool = "mean",
        pool_of: PoolOf = "keys",
        scale: float | None = None,
        k: int = 2,
        renormalise: bool = True,
        route: Route = "annealed",
        qk_norm: bool = True,
        out_gate: bool = False,
        hybrid: Hybrid = "none",
        window: int = 16,
        conv: int = 4,
        position: Position = "none",
        slots: int = 64,
        gain: float = 1.0,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **unknown: Never,
    ) -> None:
        _refuse(unknown)
        super().__init__()
        keys = {key: value for key, value in locals().items() if key in MemoryMixer.model_fields}
        for key in ("memory", "gate", "aggregate"):
            if is_path(keys[key]):
                raise ValueError(
                    f"{key}: {keys[key]!r} is a part of your own, which works in a grid but not in this layer"
                )
        around = {"dim": dim, "heads": heads, "conv": conv, "position": position, "layers": 1}
        self.config = _checked({**around, "mixer": {"name": "memory", **keys}})
        assert isinstance(self.config.mixer, MemoryMixer)
        whole("slots", slots, 1, MOST_SLOTS)
        if not (isinstance(gain, int | float) and 0 < gain < float("inf")):
            raise ValueError(f"gain: must be a number above 0, got {gain!r}")
        #: A hash of all keys that the meaning of a cache depends on.
        self.key = _key(self.config)
        place = torch.get_default_device() if device is None else device
        with torch.device("cpu"):
            self.mixer = _made(self.config, self.config.mixer, slots, gain)
            self.reset_parameters(generator)
        self.to(device=place, dtype=dtype)
        self.register_load_state_dict_pre_hook(_with_axis)  # type: ignore[no-untyped-call]

    @classmethod
    def from_run(cls, model: "LM", run: "RunConfig", layer: int = 0) -> "MemoryCaching":
        """Copy layer `layer` (counted from 0) of a trained `model`; `model` and `run` are those of `mclab.load_model`.

        The copy shares no weights with the model and computes the same outputs as the layer, bit for bit. Raises
        `ValueError` if there is no such layer, or its mixer is not a memory.
        """
        whole("layer", layer, 0, run.model.layers - 1)
        mixer, own = run.model.mixers[layer], model.blocks[layer].get_submodule("mixer")
        if not isinstance(mixer, MemoryMixer):
            raise ValueError(f"layer: layer {layer} is {mixer.name}, not a memory")
        keys = mixer.fitted(run.task.length).model_dump(exclude={"name", *OWN})
        position = run.model.position if run.model.position == "rotary" else "none"
        slots = [part.weight.shape[-1] // part.heads for part in own.modules() if isinstance(part, InputGate)]
        kind = next(own.parameters())
        made = cls(
            run.model.dim,
            run.model.heads,
            **keys,
            conv=run.model.conv,
            position=position,
            slots=slots[0] if slots else 1,
            device=kind.device,
            dtype=kind.dtype,
        )
        made.mixer.load_state_dict(own.state_dict())
        return made

    @overload
    def forward(self, x: Tensor, cache: None = None) -> Tensor: ...

    @overload
    def forward(self, x: Tensor, cache: Cache) -> tuple[Tensor, Cache]: ...

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor | tuple[Tensor, Cache]:
        """Return the outputs [B, T, D] for the inputs `x` [B, T, D]; with `cache`, also the cache after the last token
        of `x`.

        With `cache`, the tokens of `x` continue the sequences that `cache` holds. The outputs of a whole sequence, of
        the sequence in pieces, and token by token are equal up to rounding. Raises `ValueError` if `x` has a wrong
        shape, if `cache` has another batch size, or if it is from a layer with other keys.
        """
        if x.dim() != 3 or x.shape[-1] != self.config.dim or not x.shape[1]:
            raise ValueError(f"x: must have the shape [batch, time >= 1, {self.config.dim}], got {list(x.shape)}")
        if cache is None:
            y: Tensor = self._called(self.mixer, x.unsqueeze(0)).squeeze(0)
            return y
        if cache.key != self.key:
            raise ValueError("cache: it is the cache of a layer with other keys; begin with this layer's empty_cache")
        if cache.batch != len(x):
            raise ValueError(f"cache: it has {cache.batch} sequences, but x has {len(x)}")
        y, past = self._called(_After(self.mixer), cache.past, x.unsqueeze(0))
        return y.squeeze(0), replace(cache, past=past)

    def empty_cache(self, batch: int) -> Cache:
        """Return the cache before the first token.

        Raises `ValueError` unless `batch` is a whole number of at least 1.
        """
        whole("batch", batch, 1)
        return Cache(batch, self.key, HybridPast() if self._hybrid else MemoryPast())

    def load_cache(self, state: Mapping[str, Tensor]) -> Cache:
        """Restore a cache from its `state_dict`, `state`. Raises `ValueError` if it does not fit this layer."""
        try:
            cache = Cache(int(state["batch"]), int(state["key"]), from_tensors(state, self._hybrid))
        except KeyError as missing:
            raise ValueError(
                f"state: it is not a cache of this layer, because {missing.args[0]!r} is missing"
            ) from None
        if cache.key != self.key:
            raise ValueError("state: it is the cache of a layer with other keys")
        return cache

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new initial parameters, seeded by one number from `generator` (by default torch's global generator)."""
        place = "cpu" if generator is None else generator.device
        initialise(self.mixer, [int(torch.randint(2**62, (), generator=generator, device=place))])

    def extra_repr(self) -> str:
        """Return the main keys of the layer, without those that have no effect."""
        mixer = self._mixer.canonical()
        told = {"dim": self.config.dim, "heads": self.config.heads, "conv": self.config.conv}
        of_memory = [key for key in ("memory", "aggregate", "gate", "segment") if key not in mixer.inert]
        told |= {key: getattr(mixer, key) for key in of_memory}
        return ", ".join(f"{key}={value!r}" for key, value in told.items())

    @property
    def _mixer(self) -> MemoryMixer:
        assert isinstance(self.config.mixer, MemoryMixer)
        return self.config.mixer

    @property
    def _hybrid(self) -> bool:
        return self._mixer.hybrid != "none"

    def _called(self, module: Module, *inputs: Any) -> Any:
        """Call `module` on `inputs`, in fp32 if the layer is in bf16 or fp16.

        For the call, the parameters of the memory and its gates are in fp32, since both sum over whole sequences.
        """
        if next(self.mixer.parameters()).dtype.itemsize >= 4:
            return module(*inputs)
        wide = {name: value.float() for name, value in module.named_parameters() if "caching." in name}
        return functional_call(module, wide, inputs)


class _After(Module):
    """A module whose forward pass continues a sequence after its past, by the mixer's method `after`."""

    def __init__(self, mixer: CachedMemory | MemoryAsLayer | MemoryAsGate) -> None:
        super().__init__()
        self.mixer = mixer

    def forward(self, past: Any, x_RBTD: Tensor) -> tuple[Tensor, Past]:
        return self.mixer.after(past, x_RBTD)


def _refuse(unknown: Iterable[str]) -> None:
    """Raise `TypeError` for an unknown argument, with the likely one; Python before 3.13 would not suggest any."""
    known = [name for name in inspect.signature(MemoryCaching).parameters if name != "unknown"]
    for name in unknown:
        own = "parts of your own work in a grid, not in this layer" if name in OWN else ""
        near = own or did_you_mean(name, known) or f"its arguments are {', '.join(known)}"
        raise TypeError(f"{name}: this is not an argument of MemoryCaching; {near}")


def _checked(model: dict[str, Any]) -> ModelConfig:
    """Return the checked config of a model with these keys.

    Raises `ConfigError` (a `ValueError`), each line of which begins with the argument.
    """
    try:
        return parse_run({"model": model}).model
    except ConfigError as error:
        error.renamed("model.mixer.", "")
        error.renamed("model.", "")
        raise


def _key(config: ModelConfig) -> int:
    assert isinstance(config.mixer, MemoryMixer)
    mixer = config.mixer.canonical()
    free = mixer.model_copy(update={"route": MemoryMixer.model_fields["route"].default})  # it matters only in training
    text = config.model_copy(update={"mixer": free}).model_dump_json()
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


def _made(
    config: ModelConfig, mixer: MemoryMixer, slots: int, gain: float
) -> CachedMemory | MemoryAsLayer | MemoryAsGate:
    # In a run, the training length bounds the chunk and sets the number of slots of an input gate. Here it is unknown.
    length = max(mixer.tokens_a_chunk, 1)
    kind: type[CachedMemory | MemoryAsLayer | MemoryAsGate] = (
        CachedMemory if mixer.hybrid == "none" else HYBRIDS[mixer.hybrid]
    )
    made = kind(1, config, mixer, length, gain)
    cached = made if isinstance(made, CachedMemory) else made.memory
    if mixer.read_gate == "input":
        cached.caching.gate = InputGate(1, config.dim, config.heads, slots)
    return made


def _with_axis(module: Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Add the replica axis to the parameters in `state` that lack it, as the stored weights of a run do."""
    for name, own in module.named_parameters():
        given = state.get(prefix + name)
        if given is not None and given.dim() == own.dim() - 1:
            state[prefix + name] = given.unsqueeze(0)

"""The sequence mixers: one model each, with its keys."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from mclab.config.model.module import ModuleMixer
from mclab.config.strict import Strict

Memory = Literal["linear", "retnet", "swla", "dla", "titans", "vector"]
Segmentation = Literal["constant", "log"]
DecayTo = Literal["init", "zero"]
MemoryNorm = Literal["rms", "none"]
Aggregate = Literal["none", "residual", "grm", "soup", "ssc"]
Gate = Literal["context", "input", "none"]
Connector = Literal["own", "shared"]
Init = Literal["restart", "checkpoint"]
Pool = Literal["mean", "sum"]


class MemoryMixer(Strict):
    """A recurrent memory, read with or without a cache of its segments (arXiv 2602.24281)."""

    name: Literal["memory"] = "memory"
    memory: Memory = Field("linear", description="the update rule")
    depth: int = Field(2, ge=1, le=8, description="dla, titans: matrices in the memory, 1 is linear; hidden width 4 K")
    chunk: int = Field(16, ge=1, description="dla, titans: tokens that share the state at which gradients are taken")
    max_lr: float = Field(1.0, gt=0, description="dla, titans: most that the step sizes of a chunk add up to")
    decay_to: DecayTo = Field("init", description="titans, depth 2 and more: what forgetting leads back to")
    memory_norm: MemoryNorm = Field("rms", description="dla, titans, depth 2 and more: x + g RMS(MLP(x)), or MLP(x)")
    segment: int = Field(8, ge=1, description="tokens in a segment")
    segmentation: Segmentation = Field("constant", description="keep every segment, or buckets of 1, 2, 4, ... segments")
    aggregate: Aggregate = Field("grm", description="how a token reads the kept memories beside the online one")
    gate: Gate = Field("context", description="what the read weights see: token and segment, the token alone, nothing")
    connector: Connector = Field("own", description="u of the context score: its own projection, or the query")
    init: Init = Field("restart", description="a segment starts from scratch, or from the last segment's end")
    pool: Pool = Field("mean", description="how a segment's keys become one vector for the context score")
    scale: float | None = Field(None, gt=0, description="factor on context scores; null: sqrt(K) for mean, 1 for sum")
    k: int = Field(2, ge=1, description="ssc: kept memories that a token reads beside the online one")
    renormalise: bool = Field(True, description="ssc: softmax over the chosen memories alone")
    qk_norm: bool = Field(True, description="L2-normalise queries and keys")
    out_gate: bool = Field(False, description="multiply the output by SiLU of a projection of the input")

    @property
    def deep(self) -> bool:
        """Whether the memory is more than one matrix."""
        return self.memory in ("dla", "titans") and self.depth > 1

    @model_validator(mode="after")
    def _soup_is_defined(self) -> "MemoryMixer":
        if self.deep and self.aggregate == "soup" and self.gate == "none":
            raise ValueError(
                "gate: soup mixes weights, and without a gate their sum over segments is no memory of depth "
                f"{self.depth}; take gate context or input, aggregate grm, or depth 1"
            )
        return self


class AttentionMixer(Strict):
    """Causal softmax attention."""

    name: Literal["attention"] = "attention"
    window: int | None = Field(None, ge=1, description="tokens that a token sees, itself included; null: all before it")


class ConvMixer(Strict):
    """A short causal convolution, gated by a projection (Zoology's BaseConv, arXiv 2312.04927)."""

    name: Literal["conv"] = "conv"
    kernel: int = Field(3, ge=1, description="taps of the causal depthwise convolution")


#: Every mixer by the word that stands under `model.mixer.name`.
MIXERS = {"memory": MemoryMixer, "attention": AttentionMixer, "conv": ConvMixer, "module": ModuleMixer}


def _default_name(value: Any) -> Any:
    return {"name": "memory", **value} if isinstance(value, dict) else value


Mixer = Annotated[
    Annotated[MemoryMixer | AttentionMixer | ConvMixer | ModuleMixer, Field(discriminator="name")],
    BeforeValidator(_default_name),
]

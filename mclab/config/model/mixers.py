"""The sequence mixers: one model each, with its keys."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from mclab.config.model.module import ModuleMixer
from mclab.config.strict import Strict

Memory = Literal["linear"]
Aggregate = Literal["none", "residual", "grm", "soup", "ssc"]
Gate = Literal["context", "input", "none"]
Connector = Literal["own", "shared"]
Init = Literal["restart", "checkpoint"]
Pool = Literal["mean", "sum"]


class MemoryMixer(Strict):
    """A recurrent memory, read with or without a cache of its segments (arXiv 2602.24281)."""

    name: Literal["memory"] = "memory"
    memory: Memory = Field("linear", description="the update rule")
    segment: int = Field(8, ge=1, description="tokens in a segment")
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

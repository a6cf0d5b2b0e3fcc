"""The keys of a recurrent memory: its rule, its caching, and the attention that a hybrid adds."""

from math import gcd
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from mclab.config.baselines import baseline
from mclab.config.fields import Args, OneOf, is_path, keywords
from mclab.config.model.base import MixerConfig
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
    SegmentLengths,
    inert_axes,
    segments_in,
    without_repeated_end,
)
from mclab.config.model.rules import Memory, Rule, names_of, rule_of
from mclab.config.strict import LARGEST

#: The axes whose value may be the dotted path of the user's own class or function.
OWN_AXES = ("memory", "gate", "aggregate")
#: The names of the memories that have certain keys, for the descriptions of these keys.
_DEEP, _DESCENDING = names_of(lambda rule: rule.may_be_deep), names_of(lambda rule: rule.descends)
_DEEP_AND_DECAYING = names_of(lambda rule: rule.may_be_deep and rule.decays)


class MemoryMixer(MixerConfig):
    """A recurrent memory, read with or without a cache of its segments (arXiv 2602.24281)."""

    name: Literal["memory"] = "memory"
    memory: Memory = Field("linear", description="the update rule; or your own, my_file.Rule")
    depth: int = Field(
        2, ge=1, le=8, description=f"for {_DEEP}: number of matrices in the memory, 1 is linear; hidden width 4 K"
    )
    chunk: int = Field(
        16, ge=1, le=2**20, description=f"for {_DESCENDING}: tokens that share the state at which gradients are taken"
    )
    max_lr: float = Field(
        1.0, gt=0, le=LARGEST, description=f"for {_DESCENDING}: upper bound on the sum of the step sizes in a chunk"
    )
    decay_to: DecayTo = Field(
        "init", description=f"for {_DEEP_AND_DECAYING} of depth 2 and more: the weights towards which the memory decays"
    )
    memory_norm: MemoryNorm = Field(
        "rms",
        description=f"for {_DEEP} of depth 2 and more: the memory's output; rms: x + g RMS(MLP(x)), "
        "soft: g RMS(MLP(x)) with a floor, none: MLP(x), residual: x + MLP(x)",
    )
    segment: int = Field(8, ge=1, le=2**20, description="number of tokens in a segment")
    segmentation: Segmentation = Field(
        "constant",
        description="constant: keep the memory of every segment; log: keep one memory for each bucket of 1, 2, 4, ... "
        "segments; listed: as constant, with segments of the lengths in segment_lengths",
    )
    segment_lengths: SegmentLengths = Field(
        (),
        max_length=2**10,
        description="for segmentation listed: number of tokens in each segment, in order; the last number repeats",
    )
    aggregate: Annotated[str, OneOf(get_args(Aggregate), or_path=True)] = Field(
        "grm", description="how a token reads the kept memories and the online memory; or your own, my_file.function"
    )
    gate: Annotated[str, OneOf(get_args(Gate), or_path=True)] = Field(
        "context",
        description="what the read weights depend on; context: the token and the segment; input: the token; "
        "none: nothing; or your own, my_file.Gate",
    )
    gate_activation: GateActivation = Field(
        "softmax",
        description="for gate context and input: how logits become weights; identity: the weights are the logits",
    )
    connector: Connector = Field(
        "own", description="own: u, which scores segments, has its own projection; shared: u has the projection of q"
    )
    init: Init = Field(
        "restart", description="a segment starts from the initial memory, or from the end of the last segment"
    )
    pool: Pool = Field("mean", description="how a segment's keys become one vector for the context score")
    pool_of: PoolOf = Field("keys", description="what is pooled: the keys of a segment, or the layer's inputs")
    scale: float | None = Field(
        None, gt=0, le=LARGEST, description="factor on the context scores; null: sqrt(K) for the mean of keys, else 1"
    )
    k: int = Field(
        2, ge=1, le=2**20, description="for ssc: number of kept memories that a token reads, besides the online one"
    )
    renormalise: bool = Field(True, description="for ssc: compute the softmax over the chosen memories only")
    route: Route = Field("annealed", description="for ssc: which memories give the choice its gradient in training")
    qk_norm: bool = Field(True, description="L2-normalise queries and keys")
    out_gate: bool = Field(False, description="multiply the output by SiLU of a projection of the input")
    hybrid: Hybrid = Field(
        "none", description="mal: window attention reads the memory's output; mag: that output gates the attention"
    )
    window: int = Field(
        16, ge=1, le=2**20, description="for mal and mag: tokens that the attention sees, the current one included"
    )
    memory_args: Args = Field((), description="for a memory of your own: its arguments, e.g. {start: 0.9}")
    gate_args: Args = Field((), description="for a gate of your own: its arguments")
    aggregate_args: Args = Field((), description="for an aggregation of your own: its arguments")
    versions: Args = Field(
        (), description="the versions of your own parts that are not 1, e.g. {memory: 2}; filled in by the plan"
    )

    @property
    def rule(self) -> Rule:
        """The properties of the update rule."""
        return rule_of(self.memory)

    @property
    def own(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """{axis: (dotted path, arguments)} for each part of the user's own."""
        paths = {axis: getattr(self, axis) for axis in OWN_AXES if is_path(getattr(self, axis))}
        if not self.weighs:
            paths.pop("gate", None)
        return {axis: (path, keywords(getattr(self, f"{axis}_args"))) for axis, path in paths.items()}

    @property
    def model_keys(self) -> frozenset[str]:
        """The keys of the model with an effect, without `position` if the rule always rotates queries and keys.

        In a hybrid, `position` has an effect on the attention.
        """
        return super().model_keys - ({"position"} if self.rule.rotary and self.hybrid == "none" else set())

    def rotates(self, position: str) -> bool:
        return position == "rotary" or self.rule.rotary

    @property
    def anchored(self) -> bool:
        """True if gradients depend on the state at the start of the chunk.

        They do not for -<M(k), v> at depth 1, whose gradient is -v k^T.
        """
        return self.rule.objective == "l2" or self.deep

    @property
    def deep(self) -> bool:
        """True if the memory has more than one matrix."""
        return self.rule.may_be_deep and self.depth > 1

    @property
    def weighs(self) -> bool:
        """True if memories are read with weights.

        If not, every visible memory has weight 1 and the gate has no effect.
        """
        return self.aggregate not in ("none", "residual")

    @property
    def read_gate(self) -> str:
        """The gate that gives the weights of a read."""
        return self.gate if self.weighs else "none"

    @property
    def trained_scores(self) -> bool:
        """True if context scores get a gradient: as logits of the gate, or through the choice of ssc."""
        return self._gate_by_score or (self.aggregate == "ssc" and self.route != "hard")

    @property
    def scored(self) -> bool:
        """True if memories have context scores, as logits of the gate or for the selection of ssc."""
        return self._gate_by_score or self.aggregate == "ssc"

    @property
    def _gate_by_score(self) -> bool:
        """True if the logits of the gate are context scores, and for the user's own gate, whose logits may be."""
        return self.read_gate == "context" or is_path(self.read_gate)

    @property
    def tokens_a_chunk(self) -> int:
        """The number of tokens in a chunk, which is no longer than its segment. For shorter sequences see `fitted`."""
        return self.chunk if self.aggregate == "none" else min(self.chunk, self.longest_segment)

    @property
    def longest_segment(self) -> int:
        """The largest number of tokens in a segment."""
        return max(self.segment_lengths) if self.segmentation == "listed" else self.segment

    @property
    def block(self) -> int:
        """The largest number of tokens that divides the length of all segments, except a last one that is cut off."""
        return gcd(*self.segment_lengths) if self.segmentation == "listed" else self.segment

    def segments(self, length: int) -> int:
        """Return the number of segments in a sequence of `length` tokens; 1 without caching."""
        if self.aggregate == "none":
            return 1
        if self.segmentation != "listed":
            return -(-length // self.segment)
        return segments_in(self.segment_lengths, length)

    @property
    def inert(self) -> frozenset[str]:
        alone = {"window"} if self.hybrid == "none" else set()
        gateless = set() if self.weighs else {"gate"}
        uncut = {"segment"} if self.segmentation == "listed" else {"segment_lengths"}
        axes = frozenset(uncut) | inert_axes(
            self.aggregate, self.read_gate, self.segmentation, self.trained_scores, self.gate_activation
        )
        args = {f"{axis}_args" for axis in OWN_AXES if axis not in self.own}
        return axes | self.rule.inert(self.depth) | alone | gateless | args | (set() if self.own else {"versions"})

    @property
    def parts(self) -> frozenset[str]:
        """The parts of the code that this mixer uses: its rule, and the values of all axes that have an effect."""
        rule = {f"memory.{self.memory}"}
        if self.deep:
            rule |= {"memory.deep", f"memory_norm.{self.memory_norm}"}
        axes: dict[str, str] = {"aggregate": self.aggregate, "init": self.init, "segmentation": self.segmentation}
        if self.scored:
            axes |= {"connector": self.connector, "pool": self.pool, "pool_of": self.pool_of}
        if self.aggregate == "ssc":
            axes["route"] = self.route
        if self.weighs:
            axes["gate"] = self.gate
        if self.read_gate != "none":
            axes["gate_activation"] = self.gate_activation
        alone = {f"hybrid.{self.hybrid}"} if self.hybrid != "none" else set()
        cached = {f"{axis}.{word}" for axis, word in axes.items()} if self.aggregate != "none" else set()
        return super().parts | rule | cached | alone

    def canonical(self) -> "MemoryMixer":
        """Return the canonical form of this mixer: keys without effect have their baselines.

        GRM without a gate becomes Residual: gamma = 1 for every visible memory (docs/equations.md#no-gate). Listed
        segments that are all equally long become constant segments.
        """
        if self.aggregate == "grm" and self.gate == "none":
            return self.model_copy(update={"aggregate": "residual"}).canonical()
        if "segment_lengths" not in self.inert and (lengths := without_repeated_end(self.segment_lengths)):
            if len(lengths) == 1:
                return self.model_copy(update={"segmentation": "constant", "segment": lengths[0]}).canonical()
            if lengths != self.segment_lengths:
                return self.model_copy(update={"segment_lengths": lengths}).canonical()
        wanted = {key: baseline("memory", key) for key in self.inert}
        if self.rule.descends and self.aggregate != "none":
            long = baseline("memory", "chunk")
            wanted["chunk"] = long if self.tokens_a_chunk == min(long, self.longest_segment) else self.tokens_a_chunk
        changes = {key: value for key, value in wanted.items() if getattr(self, key) != value}
        return self.model_copy(update=changes) if changes else self

    def fitted(self, length: int) -> "MemoryMixer":
        """Return this mixer for sequences of `length` tokens, with a chunk that is no longer than the sequence.

        A longer chunk would divide the step size by tokens that do not exist (docs/equations.md#step-sizes).
        """
        if self.rule.descends and self.tokens_a_chunk > length:
            return self.model_copy(update={"chunk": length})
        return self

    @model_validator(mode="after")
    def _soup_is_defined(self) -> "MemoryMixer":
        if self.deep and self.aggregate == "soup" and self.gate == "none":
            raise ValueError(
                "gate: aggregate soup sums the weight matrices of memories, and with gate none their sum over "
                f"segments is not a memory of depth {self.depth}; take gate context or input, aggregate grm, or "
                "depth 1"
            )
        return self

    @model_validator(mode="after")
    def _listed_lengths_are_given(self) -> "MemoryMixer":
        if self.segmentation == "listed" and not self.segment_lengths:
            raise ValueError(
                "segment_lengths: segmentation listed needs the lengths of the segments; give them, e.g. "
                "[8, 16, 40], or take segmentation constant"
            )
        return self

    @model_validator(mode="after")
    def _scores_compare_alike(self) -> "MemoryMixer":
        if not self.scored or self.pool_of == "keys":
            return self
        if not self.trained_scores:
            raise ValueError(
                f"pool_of: aggregate ssc with route hard and gate {self.gate} compares queries with pooled keys, but "
                "pool_of is inputs; take pool_of keys, another route, or gate context"
            )
        if self.connector == "shared":
            raise ValueError(
                "pool_of: connector shared compares queries with pooled keys, but pool_of is inputs; take pool_of "
                "keys or connector own"
            )
        return self

"""The config of one run: task, model, training, evaluation and seed. For the id of a run see `mclab.config.ids`."""

from typing import Literal

from pydantic import Field, model_validator

from mclab.config.model import MemoryMixer, ModelConfig
from mclab.config.strict import LARGEST, Strict
from mclab.config.task import ModuleTask, MqarTask, Task, TaskConfig
from mclab.config.variants import Variant, Variants, variants

Precision = Literal["fp32", "bf16", "fp64"]
PostMix = Literal["outputs", "memories"]
Status = Literal["done", "diverged", "oom", "failed", "pruned"]


class TrainConfig(Strict):
    """The keys of training: AdamW (0.9, 0.95), linear warm-up, then cosine to a tenth of the peak."""

    steps: int = Field(600, ge=1, le=10**8, description="number of optimiser steps")
    batch: int = Field(64, ge=1, le=2**20, description="number of sequences in a step")
    lr: float = Field(1e-2, gt=0, le=LARGEST, description="peak learning rate")
    weight_decay: float = Field(0.1, ge=0, le=LARGEST, description="weight decay of AdamW, on matrices only")
    clip: float = Field(
        1.0, gt=0, le=LARGEST, description="largest norm of the gradient; a larger gradient is scaled down"
    )
    warmup: float = Field(0.1, ge=0, le=1, description="share of the steps in which the learning rate rises")
    examples: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="train on a fixed set of this many sequences, again and again; null: no sequence is repeated",
    )
    task: Variants = Field(
        (), description="a mix of tasks to train on: each is the task with some keys changed, and `weight` is its share"
    )
    stop_at: float | None = Field(
        None, gt=0, le=1, description="stop training when the worst slice of valid has this accuracy"
    )
    precision: Precision = Field("fp32", description="number format of training; bf16 is autocast, fp64 is for checks")
    checkpoint_every: int | None = Field(
        None,
        ge=1,
        le=10**8,
        description="steps between checkpoints, which are kept in the run folder (a cluster's workers must share it)",
    )


class EvalConfig(Strict):
    """The keys of evaluation.

    The sequences of valid and test are fixed by the seed, and come from separate random streams.
    """

    every: int = Field(50, ge=1, le=10**8, description="steps between evaluations on valid")
    valid: int = Field(
        256,
        ge=1,
        le=2**20,
        description="sequences per slice of valid, on which choices are made (learning rate, early stop)",
    )
    test: int = Field(1024, ge=1, le=2**20, description="sequences per slice of test, for the table")
    task: Variants = Field(
        (), description="further slices of the test: the task with some keys changed, e.g. {length: 128}"
    )
    post_training: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="for aggregate none: test with a cache, averaging over this many of the last states; null: off",
    )
    post_segment: int | None = Field(
        None, ge=1, le=2**20, description="tokens between kept states; null: the training length, task.length"
    )
    post_mix: PostMix = Field(
        "outputs", description="with post_training: average the reads of the states, or read the average of the states"
    )


class RunConfig(Strict):
    """The config of one run: everything that its result depends on."""

    seed: int = Field(
        0, ge=0, lt=2**31, description="seed of init, train, valid and test, which use separate random streams"
    )
    task: Task = Field(default_factory=MqarTask, description="the data")
    model: ModelConfig = Field(default_factory=ModelConfig, description="the model")
    train: TrainConfig = Field(default_factory=TrainConfig, description="the training")
    eval: EvalConfig = Field(default_factory=EvalConfig, description="the evaluation")

    @property
    def mix(self) -> tuple[Variant, ...]:
        """The tasks from which training batches come: the variants in `train.task`, by default the task itself."""
        return variants(self.task, self.train.task) or (Variant("", 1, self.task),)

    @property
    def test_variants(self) -> tuple[Variant, ...]:
        """The variants that `eval.task` adds to the test."""
        return variants(self.task, self.eval.task)

    @property
    def tested(self) -> dict[str, TaskConfig]:
        """{name of a slice in tables: task with only this slice}, for the task's slices, then those of `eval.task`."""
        own: dict[str, TaskConfig] = {name: self.task.only(name) for name in self.task.slices}
        added = ((variant.task, slices) for variant in self.test_variants for slices in variant.slices.items())
        return own | {name: task.only(each) for task, (name, each) in added}

    @property
    def cached_after(self) -> int:
        """The number of tokens between two states that `eval.post_training` caches."""
        return self.eval.post_segment or self.task.length

    @model_validator(mode="after")
    def _own_task_is_named(self) -> "RunConfig":
        if isinstance(self.task, ModuleTask) and not self.task.module:
            raise ValueError("task.module: the function or class is missing; write its dotted path, e.g. my_tasks.copy")
        return self

    @model_validator(mode="after")
    def _cache_after_training(self) -> "RunConfig":
        if self.eval.post_training is None:
            return self
        cached = {mixer.aggregate for mixer in self.model.mixers if isinstance(mixer, MemoryMixer)}
        if not cached:
            names = " and ".join(dict.fromkeys(mixer.name for mixer in self.model.mixers))
            raise ValueError(
                f"eval.post_training: this key keeps states of a memory, but mixer {names} has none; leave it out or "
                "take model.mixer.name memory"
            )
        if reads := cached - {"none"}:
            raise ValueError(
                f"eval.post_training: this key is for a model trained without a cache, but aggregate is {min(reads)}; "
                "take model.mixer.aggregate none"
            )
        for mixer in self.model.mixers:
            mixer = mixer.fitted(self.task.length)
            if isinstance(mixer, MemoryMixer) and mixer.anchored and self.cached_after % mixer.chunk:
                key = "eval.post_segment" if self.eval.post_segment else "task.length"
                fitting = -(-self.cached_after // mixer.chunk) * mixer.chunk
                raise ValueError(
                    f"{key}: {self.cached_after} is not a multiple of model.mixer.chunk {mixer.chunk}, so that "
                    f"keeping states would move the chunks; take eval.post_segment {fitting}"
                )
        return self

    @model_validator(mode="after")
    def _variants_fit(self) -> "RunConfig":
        for key, lines in (("train.task", self.train.task), ("eval.task", self.eval.task)):
            try:
                found = variants(self.task, lines)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
            longest = max((variant.task.length for variant in found), default=0)
            if self.model.position == "learned" and longest > self.task.length:
                raise ValueError(
                    f"{key}: length {longest} is longer than the learned positions, which end at task.length "
                    f"{self.task.length}; take model.position none or rotary, or a larger task.length"
                )
        return self

    @model_validator(mode="after")
    def _test_set_exists(self) -> "RunConfig":
        share = self.task.space() // 4
        asked = max(self.eval.valid, self.eval.test)
        if share < asked:
            key = "eval.test" if self.eval.test == asked else "eval.valid"
            way = f"take {key} {share} or" if share else "take"
            raise ValueError(
                f"{key}: {asked} sequences are asked for, but the task's smallest slice has only {self.task.space()} "
                f"different ones, and valid and test get a quarter of these each; {way} a larger vocab, length or "
                "number of pairs"
            )
        return self

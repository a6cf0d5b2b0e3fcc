"""One run: task, model, training, evaluation, seed; and the id that names what changes its science."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Literal

from pydantic import Field, model_validator

from mclab.config.baselines import baseline, laid_out
from mclab.config.model import MemoryMixer, ModelConfig
from mclab.config.model.canonical import canonical_model, inert_keys, moved_words
from mclab.config.strict import LARGEST, Leaf, Strict, leaves
from mclab.config.task import ModuleTask, MqarTask, Task, TaskConfig
from mclab.config.variants import Variant, Variants, variants, without_repeats
from mclab.config.versions import versions

#: How ids are made. A changed default or formula does not change it: see `baselines.py` and `versions.py`.
SCIENCE = 1

Precision = Literal["fp32", "bf16", "fp64"]
PostMix = Literal["outputs", "memories"]
Status = Literal["done", "diverged", "oom", "failed", "pruned"]

#: Runs that differ in nothing but these train as one pack: none of them changes a tensor's shape.
PACKABLE = ("seed", "train.lr", "train.weight_decay", "train.clip", "train.stop_at")

#: Before what a word of the pattern has come to mean, in an id.
WORDS = "model.pattern."

#: Keys that change how a run is trained and nothing in its result.
UNSCIENTIFIC = frozenset({"train.checkpoint_every"})


class TrainConfig(Strict):
    """AdamW (0.9, 0.95), linear warm-up, then cosine to a tenth of the peak."""

    steps: int = Field(600, ge=1, le=10**8, description="optimiser steps")
    batch: int = Field(64, ge=1, le=2**20, description="sequences in a step")
    lr: float = Field(1e-2, gt=0, le=LARGEST, description="peak learning rate")
    weight_decay: float = Field(0.1, ge=0, le=LARGEST, description="on matrices alone")
    clip: float = Field(1.0, gt=0, le=LARGEST, description="largest gradient norm")
    warmup: float = Field(0.1, ge=0, le=1, description="share of the steps in which the learning rate rises")
    examples: int | None = Field(
        None, ge=1, le=10**9, description="recycle a fixed set of so many sequences; null: never repeat"
    )
    task: Variants = Field((), description="a mix to train on: the task with keys changed, and weight for its share")
    stop_at: float | None = Field(None, gt=0, le=1, description="stop when the worst valid slice is this accurate")
    precision: Precision = Field("fp32", description="bf16 is autocast; fp64 is for checks")
    checkpoint_every: int | None = Field(
        None,
        ge=1,
        le=10**8,
        description="steps between checkpoints, in the run folder (which a cluster's workers must share)",
    )


class EvalConfig(Strict):
    """Fixed sets per seed, made from their own streams."""

    every: int = Field(50, ge=1, le=10**8, description="steps between looks at valid")
    valid: int = Field(256, ge=1, le=2**20, description="sequences per slice, for choices (learning rate, early stop)")
    test: int = Field(1024, ge=1, le=2**20, description="sequences per slice, for the table")
    task: Variants = Field((), description="further slices on test: the task with keys changed, e.g. {length: 128}")
    post_training: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="aggregate none: test with a cache, the last so many kept states averaged in; null: off",
    )
    post_segment: int | None = Field(
        None, ge=1, le=2**20, description="tokens between kept states; null: the training length, task.length"
    )
    post_mix: PostMix = Field(
        "outputs", description="with post_training: average what is read of the states, or average them and read once"
    )


class RunConfig(Strict):
    """Everything that one training run depends on."""

    seed: int = Field(0, ge=0, lt=2**31, description="drives init, train, valid and test through separate domains")
    task: Task = Field(default_factory=MqarTask, description="the data")
    model: ModelConfig = Field(default_factory=ModelConfig, description="the model")
    train: TrainConfig = Field(default_factory=TrainConfig, description="the training")
    eval: EvalConfig = Field(default_factory=EvalConfig, description="the evaluation")

    @property
    def mix(self) -> tuple[Variant, ...]:
        """What training batches are made of: the task itself unless `train.task` says otherwise."""
        return variants(self.task, self.train.task) or (Variant("", 1, self.task),)

    @property
    def exams(self) -> tuple[Variant, ...]:
        """What `eval.task` adds to the test."""
        return variants(self.task, self.eval.task)

    @property
    def tested(self) -> dict[str, TaskConfig]:
        """Every slice of the test by its name in tables: the task's own, then those that `eval.task` adds."""
        own: dict[str, TaskConfig] = {name: self.task.only(name) for name in self.task.slices}
        return own | {name: exam.task.only(each) for exam in self.exams for name, each in exam.slices.items()}

    @property
    def cached_after(self) -> int:
        """Tokens between the states that a cache after training keeps."""
        return self.eval.post_segment or self.task.length

    @model_validator(mode="after")
    def _own_task_is_named(self) -> "RunConfig":
        if isinstance(self.task, ModuleTask) and not self.task.module:
            raise ValueError("task.module: is missing; name the function or class, e.g. my_tasks.copy")
        return self

    @model_validator(mode="after")
    def _cache_after_training(self) -> "RunConfig":
        if self.eval.post_training is None:
            return self
        cached = {mixer.aggregate for mixer in self.model.mixers if isinstance(mixer, MemoryMixer)}
        if not cached:
            names = " and ".join(dict.fromkeys(mixer.name for mixer in self.model.mixers))
            raise ValueError(
                f"eval.post_training: keeps states of a memory, and mixer {names} has none; "
                f"leave it out or take model.mixer.name memory"
            )
        if reads := cached - {"none"}:
            raise ValueError(
                f"eval.post_training: is for a model trained without a cache, and aggregate is {min(reads)}; "
                f"take model.mixer.aggregate none"
            )
        for mixer in self.model.mixers:
            mixer = mixer.fitted(self.task.length)
            if isinstance(mixer, MemoryMixer) and mixer.anchored and self.cached_after % mixer.chunk:
                key = "eval.post_segment" if self.eval.post_segment else "task.length"
                fitting = -(-self.cached_after // mixer.chunk) * mixer.chunk
                raise ValueError(
                    f"{key}: {self.cached_after} is no multiple of model.mixer.chunk {mixer.chunk}, so that keeping "
                    f"states would move the chunks; take eval.post_segment {fitting}"
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
                    f"{key}: length {longest} is beyond the learned positions of task.length {self.task.length}; "
                    f"take model.position none or rotary, or a larger task.length"
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
                f"{key}: {asked} sequences, but the task's smallest slice holds {self.task.space()} different ones and "
                f"a quarter of them is kept for each of valid and test; {way} a larger vocab, "
                f"length or number of pairs"
            )
        return self


def inert(run: RunConfig) -> frozenset[str]:
    """Dotted paths of the keys that change nothing in this run, given its other keys."""
    dead = frozenset(f"model.{key}" for key in inert_keys(run.model))
    return dead | {"eval.post_segment", "eval.post_mix"} if run.eval.post_training is None else dead


def canonical(run: RunConfig) -> RunConfig:
    """The one config that stands for every config with the same science: inert keys at their baselines, and of a chunk
    that is longer than the sequences what counts of it."""
    return _canonical(run, run.task.length)


def _canonical(run: RunConfig, length: int | None) -> RunConfig:
    if run.train.checkpoint_every is not None:
        run = run.model_copy(update={"train": run.train.model_copy(update={"checkpoint_every": None})})
    for room, section in (("train", run.train), ("eval", run.eval)):
        if (lines := without_repeats(run.task, section.task)) != section.task:
            run = run.model_copy(update={room: section.model_copy(update={"task": lines})})
    # Variants change keys of the task as it was written.
    if not (run.train.task or run.eval.task) and (task := run.task.canonical()) != run.task:
        run = run.model_copy(update={"task": task})
    if (eval_ := _canonical_eval(run)) != run.eval:
        run = run.model_copy(update={"eval": eval_})
    model = canonical_model(run.model, length)
    return run if model is run.model else run.model_copy(update={"model": model})


def _canonical_eval(run: RunConfig) -> EvalConfig:
    """Of a cache after training nothing where there is none; the training length between its states is the baseline."""
    unused = run.eval.post_training is None
    changes: dict[str, Leaf] = {}
    if unused or run.cached_after == run.task.length:
        changes["post_segment"] = baseline("eval", "post_segment")
    if unused:
        changes["post_mix"] = baseline("eval", "post_mix")
    return run.eval.model_copy(update=changes)


def science(run: RunConfig) -> dict[str, Leaf]:
    """The keys that make this run what it is: those that differ from their baselines, inert ones left out.

    A word of the pattern stands for keys at their defaults; those of them that are not at their baselines any more are
    named behind it, `model.pattern.titans.depth`.
    """
    return _named(canonical(run))


def _named(run: RunConfig) -> dict[str, Leaf]:
    dead = inert(run) | UNSCIENTIFIC
    values = ((path, get(run), absent) for path, get, absent in _layout(run.task.name, run.model.mixer.name))
    named = {
        path: value
        for path, value, absent in values
        if path not in dead and (value != absent or path.endswith(".name"))
    }
    return {**named, **{f"{WORDS}{key}": value for key, value in moved_words(run.model).items()}}


@cache
def _layout(task: str, mixer: str) -> tuple[tuple[str, Callable[[RunConfig], Leaf], Leaf], ...]:
    """Path, getter and baseline of every key of a run with this task and mixer, sorted by path."""
    return tuple((path, attrgetter(path), default) for path, default in sorted(laid_out(task, mixer).items()))


def run_id(run: RunConfig) -> str:
    """Sixteen hexadecimal digits that name the science of a run. Floats count by their exact value."""
    run = canonical(run)
    return _hashed(_named(run), versions(run))


def written(run: RunConfig) -> dict[str, Leaf]:
    """What somebody has to write to get this run: the keys that differ from their defaults, inert ones left out."""
    run = canonical(run)
    dead = inert(run) | UNSCIENTIFIC
    bare = RunConfig.model_construct(
        task=type(run.task)(), model=ModelConfig.model_construct(mixer=type(run.model.mixer)()), seed=0
    )
    defaults = dict(leaves(bare))
    return {
        path: value
        for path, value in sorted(leaves(run))
        if path not in dead and (value != defaults[path] or path.endswith(".name"))
    }


def id_as_of(run: RunConfig, past: Mapping[str, int], words: Mapping[str, Leaf]) -> str:
    """The id that the run had while its parts were at the versions `past`, all others at their first, and while the
    words of its pattern stood for what `words` says (as `moved_words`).

    What was stored is canonical as of then: a chunk longer than the sequences is that of a run from before the shorter
    counted, and stays in its id."""
    keys = {path: value for path, value in _named(_canonical(run, None)).items() if not path.startswith(WORDS)}
    return _hashed({**keys, **{f"{WORDS}{key}": value for key, value in words.items()}}, past)


def _hashed(keys: Mapping[str, Leaf], parts: Mapping[str, int]) -> str:
    exact = {path: _exact(value) for path, value in keys.items()}
    moved = {"versions": dict(parts)} if parts else {}
    text = json.dumps({"science": SCIENCE, **exact, **moved}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _exact(value: Leaf) -> Any:
    if isinstance(value, tuple):
        return [_exact(v) for v in value]
    return value.hex() if isinstance(value, float) else value


def shape_key(run: RunConfig) -> str:
    """Equal for runs that may share a pack: the id of the run without its packable scalars."""
    rest = {path: _exact(value) for path, value in science(run).items() if path not in PACKABLE}
    return json.dumps(rest, sort_keys=True)

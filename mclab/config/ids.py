"""Decide whether two runs are the same: the canonical form of a run, the keys without effect, and the run id.

`run_id` hashes the keys of the canonical run that differ from the baselines (`baselines.py`), and the versions of the
parts that the run uses (`versions.py`). docs/ids.md says what changes an id and what does not.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from operator import attrgetter
from typing import Any

from mclab.config.baselines import all_baselines, baseline
from mclab.config.model import AttentionMixer, ModelConfig
from mclab.config.model.mixers import MIXER, MIXERS, Mixer, as_pattern, from_name, layer_mixer, name_of
from mclab.config.run import EvalConfig, RunConfig
from mclab.config.strict import Leaf, leaves
from mclab.config.variants import without_repeats
from mclab.config.versions import versions

#: The version of the way in which ids are made. It does not change with a default or a formula: see `baselines.py` and
#: `versions.py`.
SCIENCE = 1

#: Runs that differ only in these keys can train as one pack, since no such key changes the shape of a tensor.
PACKABLE = ("seed", "train.lr", "train.weight_decay", "train.clip", "train.stop_at")

#: The prefix, in an id, of the keys that `moved_defaults` returns: they state what a name of the pattern stands for.
WORDS = "model.pattern."

#: Keys that change how a run is trained but not its result.
UNSCIENTIFIC = frozenset({"train.checkpoint_every"})


#: Names that patterns accepted from the beginning (without `/N`), except those of mixers that can be spelled in
#: several ways.
_FIRST = ("conv", "attention", MIXER)


def inert(run: RunConfig) -> frozenset[str]:
    """Return the dotted paths of the keys that change nothing in this run, given its other keys."""
    dead = frozenset(f"model.{key}" for key in inert_keys(run.model))
    return dead | {"eval.post_segment", "eval.post_mix"} if run.eval.post_training is None else dead


def canonical(run: RunConfig) -> RunConfig:
    """Return the canonical form of a run: a key without effect has its baseline, a chunk is at most a sequence."""
    return _canonical(run, run.task.length)


def _canonical(run: RunConfig, length: int | None) -> RunConfig:
    if run.train.checkpoint_every is not None:
        run = run.model_copy(update={"train": run.train.model_copy(update={"checkpoint_every": None})})
    for name, section in (("train", run.train), ("eval", run.eval)):
        if (lines := without_repeats(run.task, section.task)) != section.task:
            run = run.model_copy(update={name: section.model_copy(update={"task": lines})})
    # If there are variants, which change keys of the task, the task stays as written.
    if not (run.train.task or run.eval.task) and (task := run.task.canonical()) != run.task:
        run = run.model_copy(update={"task": task})
    if (eval_ := _canonical_eval(run)) != run.eval:
        run = run.model_copy(update={"eval": eval_})
    model = canonical_model(run.model, length)
    return run if model is run.model else run.model_copy(update={"model": model})


def _canonical_eval(run: RunConfig) -> EvalConfig:
    """Return the canonical form of the eval section.

    If `post_training` is null, `post_segment` and `post_mix` have their baselines. `post_segment` also has its baseline
    if it equals the training length.
    """
    unused = run.eval.post_training is None
    changes: dict[str, Leaf] = {}
    if unused or run.cached_after == run.task.length:
        changes["post_segment"] = baseline("eval", "post_segment")
    if unused:
        changes["post_mix"] = baseline("eval", "post_mix")
    return run.eval.model_copy(update=changes)


def science(run: RunConfig) -> dict[str, Leaf]:
    """Return the keys that decide this run's result, with their values: they have an effect and differ from their
    baselines.

    A name in the pattern stands for keys at their defaults. If the default of such a key differs from its baseline by
    now, the key is included under a path such as `model.pattern.titans.depth`.
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
    return {**named, **{f"{WORDS}{key}": value for key, value in moved_defaults(run.model).items()}}


@cache
def _layout(task: str, mixer: str) -> tuple[tuple[str, Callable[[RunConfig], Leaf], Leaf], ...]:
    """Return the path, getter and baseline of every key of a run with this task and mixer, sorted by path."""
    return tuple((path, attrgetter(path), default) for path, default in sorted(all_baselines(task, mixer).items()))


def run_id(run: RunConfig) -> str:
    """Return sixteen hexadecimal digits, which are equal for runs with the same result.

    Floats count by their exact value.
    """
    run = canonical(run)
    return _hashed(_named(run), versions(run))


def written(run: RunConfig) -> dict[str, Leaf]:
    """Return the keys that describe this run in a grid: they have an effect and differ from their defaults."""
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
    """Return the id that the run had in an earlier version of mclab.

    `past` are the versions that its parts had then (1 if a part is not in `past`). `words` are the defaults that the
    names of its pattern stood for, in the form that `moved_defaults` returns. A stored run is in the canonical form of
    its time; so a chunk longer than the sequences stays in the id, since it was stored before the canonical form
    limited it.
    """
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
    """Return a text that is equal for runs that may share a pack: `science` without the keys `PACKABLE`, as JSON."""
    rest = {path: _exact(value) for path, value in science(run).items() if path not in PACKABLE}
    return json.dumps(rest, sort_keys=True)


def canonical_model(model: ModelConfig, length: int | None = None) -> ModelConfig:
    """Return the canonical form of a model with these layers, for sequences of `length` tokens if `length` is given.

    If all attention layers agree on `rotary` and `conv`, these values move to the model's `position` and `conv`. In the
    pattern, `mixer` stands for one kind of layer, which is `model.mixer`; all other kinds have names.
    """
    layers = tuple(_explicit(mixer, model) for mixer in model.mixers)
    fitted = layers if length is None else tuple(mixer.fitted(length).canonical() for mixer in layers)
    position, conv, mixers = _shortest_form(model, fitted)
    if fitted != layers and _nameless(mixers) > 1:
        position, conv, mixers = _shortest_form(model, layers)
    own = _own(model, mixers)
    names = tuple(MIXER if mixer == own else name_of(mixer) or MIXER for mixer in mixers)
    heads = model.heads if _used(layers, "heads") else baseline("model", "heads")
    wanted = {"heads": heads, "position": position, "conv": conv, "mixer": own, "pattern": as_pattern(names)}
    changes = {key: value for key, value in wanted.items() if getattr(model, key) != value}
    return model.model_copy(update=changes) if changes else model


def inert_keys(model: ModelConfig) -> frozenset[str]:
    """Return the dotted paths (relative to `model`) of the keys that have no effect in this model."""
    unused = {key for key in ("heads", "conv") if not _used(model.mixers, key)}
    return frozenset(f"mixer.{key}" for key in model.mixer.inert) | unused


def moved_defaults(model: ModelConfig) -> dict[str, Leaf]:
    """Return the defaults that differ from their baselines by now, for all names in the pattern.

    An example is {`titans.depth`: 2}.
    """
    found: dict[str, Leaf] = {}
    for name in sorted({*model.layer_names} - {MIXER}):
        mixer = layer_mixer(name)
        given = {*from_name(name), "aggregate"}
        keys = (key for key in type(mixer).model_fields if key not in given and key not in mixer.inert)
        moved = {key: getattr(mixer, key) for key in keys if getattr(mixer, key) != baseline(mixer.name, key)}
        found |= {f"{name}.{key}": value for key, value in moved.items()}
    return found


def _used(mixers: tuple[Mixer, ...], key: str) -> bool:
    return any(key in mixer.model_keys for mixer in mixers)


def _explicit(mixer: Mixer, model: ModelConfig) -> Mixer:
    """Return the canonical mixer.

    In an attention, `rotary` and `conv` are written out even if they come from `model`.
    """
    if not isinstance(mixer, AttentionMixer):
        return mixer.canonical()
    return mixer.model_copy(update={"rotary": mixer.rotates(model.position), "conv": mixer.kernel_size(model.conv)})


def _shortest_form(model: ModelConfig, layers: tuple[Mixer, ...]) -> tuple[str, int, tuple[Mixer, ...]]:
    """Return `position`, `conv` and the layers relative to them (`AttentionMixer.relative_to`).

    `position` and `conv` are chosen so that as few kinds of layers as possible have no name.
    """

    def relative(position: str, conv: int) -> tuple[Mixer, ...]:
        return tuple(
            mixer.relative_to(position, conv) if isinstance(mixer, AttentionMixer) else mixer for mixer in layers
        )

    position, conv = min(_model_keys(model, layers), key=lambda keys: _nameless(relative(*keys)))
    return position, conv, relative(position, conv)


def _model_keys(model: ModelConfig, layers: tuple[Mixer, ...]) -> Iterator[tuple[str, int]]:
    """Yield every pair (position, conv) that the model may have with these layers; `none` and the baseline come first.

    A key that some layer takes from the model keeps its value, and so does a learned position. Otherwise the candidates
    are the values that the attention layers have; without attention layers, `none` and the baseline.
    """
    own = [mixer for mixer in layers if isinstance(mixer, AttentionMixer)]
    usual = baseline("model", "conv")
    positions = sorted({"rotary" if mixer.rotary else "none" for mixer in own}) or ["none"]
    convs = sorted({mixer.kernel_size(usual) for mixer in own}, key=lambda conv: (conv != usual, conv)) or [usual]
    if _used(layers, "position") or model.position == "learned":
        positions = [model.position]
    yield from product(positions, [model.conv] if _used(layers, "conv") else convs)


def _nameless(mixers: tuple[Mixer, ...]) -> int:
    """Return the number of different layers without a name.

    A config can express at most one of them, as `model.mixer`.
    """
    return len({mixer for mixer in mixers if name_of(mixer) is None})


def _own(model: ModelConfig, mixers: tuple[Mixer, ...]) -> Mixer:
    """Return the mixer among `mixers` that becomes `model.mixer` in the canonical form.

    This is a mixer without a name, if there is one. Otherwise, if the pattern has `mixer` and all its names are in
    `_FIRST`, it is the given `model.mixer` (except for attention and log_linear), since ids were made with it.
    Otherwise it is the one that comes first in the order of `MIXERS`: a memory, else an attention, ...
    """
    nameless = [mixer for mixer in mixers if name_of(mixer) is None]
    if nameless:
        return nameless[0]
    names, given = model.layer_names, model.mixer
    if MIXER in names and all(name.partition("/")[0] in _FIRST for name in names):
        resolved = mixers[names.index(MIXER)]
        if isinstance(given, AttentionMixer):
            if given == resolved and given.rotary is None and given.conv is None:
                return resolved
        elif given.name != "log_linear":
            return resolved
    rank = list(MIXERS)
    return min(mixers, key=lambda mixer: rank.index(mixer.name))

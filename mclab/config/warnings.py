"""Warn about harmless settings of a run that a researcher may not have meant.

A plan prints the warnings and continues.
"""

from collections.abc import Iterator

from mclab.config.lengths import Lengths
from mclab.config.model import AttentionMixer, ConvMixer, MemoryMixer, Mixer, ModelConfig
from mclab.config.model.mixers import MIXER, mixer_of
from mclab.config.run import RunConfig
from mclab.config.variants import turns

#: The largest number of steps for which the turns of a mix are checked one by one.
_MOST_TURNS = 100_000


def warnings_of(run: RunConfig) -> list[str]:
    """Return one line for each warning; it begins with the dotted path of the key."""
    lengths = Lengths.of(run)
    return [
        *run.task.warnings,
        *_of_model(run.model, lengths),
        *_of_training(run),
        *_of_intervals(run),
        *_of_cache_after_training(run),
    ]


def _of_model(model: ModelConfig, lengths: Lengths) -> Iterator[str]:
    unused = model.pattern[model.layers :]
    if unused:
        yield (
            f"model.pattern: has {len(model.pattern)} names for {model.layers} layers: "
            f"{', '.join(unused)} is used in none"
        )
    for name in dict.fromkeys(model.layer_names):
        for line in _of_mixer(mixer_of(name, model.mixer), lengths):
            yield f"model.mixer.{line}" if name == MIXER else _of_named_mixer(name, line)
    if any("conv" in mixer.model_keys for mixer in model.mixers):
        yield from (f"model.{line}" for line in _kernel_beyond("conv", model.conv, lengths))
    if model.position == "rotary" and not any("position" in mixer.model_keys for mixer in model.mixers):
        yield f"model.position: rotary turns queries and keys, and {_why_not_rotated(model)}: as with none"
    if model.position == "learned" and lengths.trained < lengths.longest:
        yield (
            f"model.position: learned positions beyond {lengths.training} are never trained, and a test has "
            f"{lengths.longest} tokens"
        )


def _of_mixer(mixer: Mixer, lengths: Lengths) -> Iterator[str]:
    """Yield warnings about a mixer; each line begins with the name of the mixer's key."""
    if isinstance(mixer, MemoryMixer):
        yield from _of_memory(mixer, lengths)
    elif isinstance(mixer, ConvMixer):
        yield from _kernel_beyond("kernel", mixer.kernel, lengths)
    elif isinstance(mixer, AttentionMixer):
        if mixer.window is not None:
            yield from _of_window(mixer.window, "a token sees all before it, as with null", lengths)
        if mixer.conv is not None:
            yield from _kernel_beyond("conv", mixer.conv, lengths)


def _of_window(window: int, unbounded: str, lengths: Lengths) -> Iterator[str]:
    if window >= lengths.longest:
        yield f"window: {window} is not below {lengths.most}: {unbounded}"
    elif window >= lengths.trained:
        yield f"window: {window} is not below {lengths.training}: it leaves tokens out in tests only"


def _kernel_beyond(key: str, size: int, lengths: Lengths) -> Iterator[str]:
    """Yield a warning if a kernel is longer than all sequences.

    A larger kernel has smaller initial values, even if most of its entries are never reached.
    """
    if size > lengths.longest:
        yield (
            f"{key}: a kernel of {size} is above {lengths.most}: the rest is never used, but makes the initial values "
            f"of the others smaller (1 / sqrt({size}))"
        )


def _of_named_mixer(name: str, line: str) -> str:
    """Return the warning `line` for a mixer in the pattern: the number in its name takes the place of the key."""
    key, _, text = line.partition(": ")
    bare = f"as {name.partition('/')[0]} alone"
    text = text.removeprefix("a kernel of ").partition(" ")[2]
    return f"model.pattern: the {key} of {name} {text.replace('a token sees all before it, as with null', bare)}"


def _of_memory(mixer: MemoryMixer, lengths: Lengths) -> Iterator[str]:
    if mixer.hybrid != "none":
        yield from _of_window(mixer.window, "the attention sees all before it", lengths)
    default = mixer.chunk == type(mixer).model_fields["chunk"].default
    if mixer.fitted(lengths.own) is not mixer and not default:
        yield f"chunk: {mixer.chunk} is above task.length {lengths.own}, where chunks end: as with {lengths.own}"
    elif mixer.rule.descends and mixer.tokens_a_chunk < mixer.chunk and not default:
        yield f"chunk: {mixer.chunk} is above {_segments_are(mixer)}, where chunks end: as with {mixer.longest_segment}"
    if mixer.aggregate != "none":
        yield from _of_cache(mixer, lengths)


def _of_cache(mixer: MemoryMixer, lengths: Lengths) -> Iterator[str]:
    segments, trained = mixer.segments(lengths.longest), mixer.segments(lengths.trained)
    if mixer.segmentation == "listed" and segments < len(mixer.segment_lengths):
        yield f"segment_lengths: only the first {segments} begin within {lengths.most}"
    if segments == 1:
        yield f"{_segments_are(mixer)} is not below {lengths.most}: nothing is ever cached"
        return
    if trained == 1:
        yield (
            f"{_segments_are(mixer)} is not below {lengths.training}: a cache is read in tests only, by weights "
            f"that were never trained"
        )
    if mixer.read_gate == "input" and trained < mixer.segments(lengths.own):
        yield (
            f"gate: input has a weight for each segment of task.length {lengths.own}, and {lengths.training} train "
            f"no more than {trained}"
        )
    if mixer.segmentation == "log" and segments == 2:
        yield f"segmentation: log of 2 segments keeps what constant does; {lengths.most} hold no more"
    if mixer.aggregate == "ssc" and mixer.k >= _most_kept(mixer, segments):
        yield f"k: {mixer.k} of at most {_most_kept(mixer, segments)} kept memories: ssc reads them all, as grm does"
    elif mixer.aggregate == "ssc" and mixer.k >= _most_kept(mixer, trained) > 0:
        yield (
            f"k: {mixer.k} of at most {_most_kept(mixer, trained)} kept memories in {lengths.training}: ssc selects "
            f"in tests only"
        )


def _segments_are(mixer: MemoryMixer) -> str:
    listed = mixer.segmentation == "listed"
    return f"segment_lengths: {mixer.segment_lengths[0]}" if listed else f"segment: {mixer.segment}"


def _most_kept(mixer: MemoryMixer, segments: int) -> int:
    """Return the largest number of kept memories that a token sees in a sequence of `segments` segments."""
    return segments - 1 if mixer.segmentation != "log" else max(n.bit_count() for n in range(segments))


def _of_training(run: RunConfig) -> Iterator[str]:
    train = run.train
    if train.examples is not None and train.examples < train.batch:
        yield (
            f"train.examples: {train.examples} sequences are fewer than train.batch {train.batch}: every step sees the "
            f"same ones several times"
        )
    if train.lr * train.weight_decay >= 1:
        yield (
            f"train.weight_decay: {train.weight_decay:g} times train.lr {train.lr:g} is not below 1: a step takes away "
            f"whole weights"
        )
    weights = tuple(part.weight for part in run.mix)
    # with at least `sum(weights)` steps, each part is trained in its turn
    if train.steps < min(sum(weights), _MOST_TURNS):
        order = set(turns(weights, train.steps))
        unseen = [part for place, part in enumerate(run.mix) if place not in order]
        names = ", ".join(name for part in unseen for name in part.slices)
        if unseen:
            yield f"train.task: {names} has no turn in train.steps {train.steps}: no step is trained on it"


def _of_intervals(run: RunConfig) -> Iterator[str]:
    """Yield warnings about intervals (evaluation, checkpoints) that are longer than the training."""
    train, every = run.train, run.eval.every
    if train.stop_at is not None and every >= train.steps:
        yield (
            f"train.stop_at: the first evaluation on valid is after eval.every {every} of train.steps {train.steps}: "
            f"nothing stops before the end"
        )
    elif every > train.steps and every != type(run.eval).model_fields["every"].default:
        yield f"eval.every: {every} is above train.steps {train.steps}: valid is evaluated once, at the end"
    if train.checkpoint_every is not None and train.checkpoint_every >= train.steps:
        yield (
            f"train.checkpoint_every: {train.checkpoint_every} is not below train.steps {train.steps}: there is no "
            f"checkpoint to resume from"
        )


def _of_cache_after_training(run: RunConfig) -> Iterator[str]:
    longest = max(run.task.length, *(variant.task.length for variant in run.test_variants), 0)
    if run.eval.post_training is not None and run.cached_after >= longest:
        key = "eval.post_training" if run.eval.post_segment is None else "eval.post_segment"
        yield (
            f"{key}: a state is kept every {run.cached_after} tokens and the longest test has {longest}: "
            f"nothing is ever cached; add longer tests (eval.task) or take a smaller eval.post_segment"
        )


def _why_not_rotated(model: ModelConfig) -> str:
    if not any("heads" in mixer.model_keys for mixer in model.mixers):
        return "no layer has any"
    if any(isinstance(mixer, AttentionMixer) for mixer in model.mixers):
        return "every attention has its own rotary"
    rotary = (mixer.memory for mixer in model.mixers if isinstance(mixer, MemoryMixer) and mixer.rule.rotary)
    return f"{' and '.join(dict.fromkeys(rotary))} rotates its own in any case"

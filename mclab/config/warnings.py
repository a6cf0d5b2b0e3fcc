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
            f"model.pattern: the pattern has {len(model.pattern)} names for {model.layers} layers, so that "
            f"{', '.join(unused)} is not used"
        )
    for name in dict.fromkeys(model.layer_names):
        for line in _of_mixer(mixer_of(name, model.mixer), lengths):
            yield f"model.mixer.{line}" if name == MIXER else _of_named_mixer(name, line)
    if any("conv" in mixer.model_keys for mixer in model.mixers):
        yield from (f"model.{line}" for line in _kernel_beyond("conv", model.conv, lengths))
    if model.position == "rotary" and not any("position" in mixer.model_keys for mixer in model.mixers):
        yield f"model.position: rotary changes nothing here, because {_why_not_rotated(model)}"
    if model.position == "learned" and lengths.trained < lengths.longest:
        yield (
            f"model.position: the learned positions beyond {lengths.training} are never trained, but the longest test "
            f"has {lengths.longest} tokens"
        )


def _of_mixer(mixer: Mixer, lengths: Lengths) -> Iterator[str]:
    """Yield warnings about a mixer; each line begins with the name of the mixer's key."""
    if isinstance(mixer, MemoryMixer):
        yield from _of_memory(mixer, lengths)
    elif isinstance(mixer, ConvMixer):
        yield from _kernel_beyond("kernel", mixer.kernel, lengths)
    elif isinstance(mixer, AttentionMixer):
        if mixer.window is not None:
            yield from _of_window(mixer.window, "a token sees all tokens before it, as with null", lengths)
        if mixer.conv is not None:
            yield from _kernel_beyond("conv", mixer.conv, lengths)


def _of_window(window: int, unbounded: str, lengths: Lengths) -> Iterator[str]:
    if window >= lengths.longest:
        yield f"window: {window} is not below {lengths.most}, so that {unbounded}"
    elif window >= lengths.trained:
        yield f"window: {window} is not below {lengths.training}, so that it hides tokens in tests only"


def _kernel_beyond(key: str, size: int, lengths: Lengths) -> Iterator[str]:
    """Yield a warning if a kernel is longer than all sequences.

    A larger kernel has smaller initial values, even if most of its entries are never reached.
    """
    if size > lengths.longest:
        yield (
            f"{key}: a kernel of {size} is longer than {lengths.most}; the rest of it is never used, but makes the "
            f"initial values of the used entries smaller (1 / sqrt({size}))"
        )


def _of_named_mixer(name: str, line: str) -> str:
    """Return the warning `line` for a mixer in the pattern: the number in its name takes the place of the key."""
    key, _, text = line.partition(": ")
    bare = f"it is the same as {name.partition('/')[0]} alone"
    text = text.removeprefix("a kernel of ").partition(" ")[2]
    return f"model.pattern: the {key} of {name} {text.replace('a token sees all tokens before it, as with null', bare)}"


def _of_memory(mixer: MemoryMixer, lengths: Lengths) -> Iterator[str]:
    if mixer.hybrid != "none":
        yield from _of_window(mixer.window, "the attention sees all tokens before it", lengths)
    default = mixer.chunk == type(mixer).model_fields["chunk"].default
    if mixer.fitted(lengths.own) is not mixer and not default:
        yield (
            f"chunk: {mixer.chunk} is above task.length {lengths.own}, but a chunk ends with the sequence, so that it "
            f"is the same as chunk {lengths.own}"
        )
    elif mixer.rule.descends and mixer.tokens_a_chunk < mixer.chunk and not default:
        yield (
            f"chunk: {mixer.chunk} is above {_segments_are(mixer)}, but a chunk ends with its segment, so that it is "
            f"the same as chunk {mixer.longest_segment}"
        )
    if mixer.aggregate != "none":
        yield from _of_cache(mixer, lengths)


def _of_cache(mixer: MemoryMixer, lengths: Lengths) -> Iterator[str]:
    segments, trained = mixer.segments(lengths.longest), mixer.segments(lengths.trained)
    if mixer.segmentation == "listed" and segments < len(mixer.segment_lengths):
        yield (
            f"segment_lengths: only the first {segments} lengths are used, because later segments begin beyond "
            f"{lengths.most}"
        )
    if segments == 1:
        yield f"{_segments_are(mixer)} is not below {lengths.most}, so that nothing is ever cached"
        return
    if trained == 1:
        yield (
            f"{_segments_are(mixer)} is not below {lengths.training}, so that a cache is read in tests only, by "
            "weights that were never trained"
        )
    if mixer.read_gate == "input" and trained < mixer.segments(lengths.own):
        yield (
            f"gate: input has a weight for each segment of task.length {lengths.own}, but {lengths.training} train "
            f"only {trained} of them"
        )
    if mixer.segmentation == "log" and segments == 2:
        yield (
            "segmentation: log keeps the same memories as constant, because there are only 2 segments in "
            f"{lengths.most}"
        )
    if mixer.aggregate == "ssc" and mixer.k >= _most_kept(mixer, segments):
        yield (
            f"k: a token sees at most {_most_kept(mixer, segments)} kept memories, so that ssc with k {mixer.k} reads "
            "all of them, as grm does"
        )
    elif mixer.aggregate == "ssc" and mixer.k >= _most_kept(mixer, trained) > 0:
        yield (
            f"k: in {lengths.training} a token sees at most {_most_kept(mixer, trained)} kept memories, so that ssc "
            f"with k {mixer.k} selects in tests only"
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
            f"train.examples: {train.examples} sequences are fewer than train.batch {train.batch}, so that every step "
            "sees the same sequences several times"
        )
    if train.lr * train.weight_decay >= 1:
        yield (
            f"train.weight_decay: {train.weight_decay:g} times train.lr {train.lr:g} is not below 1, so that one step "
            "can remove whole weights"
        )
    weights = tuple(part.weight for part in run.mix)
    # with at least `sum(weights)` steps, each part is trained in its turn
    if train.steps < min(sum(weights), _MOST_TURNS):
        order = set(turns(weights, train.steps))
        unseen = [part for place, part in enumerate(run.mix) if place not in order]
        names = ", ".join(name for part in unseen for name in part.slices)
        if unseen:
            yield (
                f"train.task: no step is trained on {names}, because train.steps {train.steps} ends before its turn "
                "in the mix"
            )


def _of_intervals(run: RunConfig) -> Iterator[str]:
    """Yield warnings about intervals (evaluation, checkpoints) that are longer than the training."""
    train, every = run.train, run.eval.every
    if train.stop_at is not None and every >= train.steps:
        yield (
            f"train.stop_at: training cannot stop early, because the first evaluation on valid is at step {every} "
            f"(eval.every) of train.steps {train.steps}"
        )
    elif every > train.steps and every != type(run.eval).model_fields["every"].default:
        yield f"eval.every: {every} is above train.steps {train.steps}, so that valid is evaluated once, at the end"
    if train.checkpoint_every is not None and train.checkpoint_every >= train.steps:
        yield (
            f"train.checkpoint_every: {train.checkpoint_every} is not below train.steps {train.steps}, so that there "
            "is no checkpoint to resume from"
        )


def _of_cache_after_training(run: RunConfig) -> Iterator[str]:
    longest = max(run.task.length, *(variant.task.length for variant in run.test_variants), 0)
    if run.eval.post_training is not None and run.cached_after >= longest:
        key = "eval.post_training" if run.eval.post_segment is None else "eval.post_segment"
        yield (
            f"{key}: a state is kept every {run.cached_after} tokens, but the longest test has {longest} tokens, so "
            "that nothing is ever cached; add longer tests (eval.task) or take a smaller eval.post_segment"
        )


def _why_not_rotated(model: ModelConfig) -> str:
    if not any("heads" in mixer.model_keys for mixer in model.mixers):
        return "no layer has queries and keys"
    if any(isinstance(mixer, AttentionMixer) for mixer in model.mixers):
        return "every attention sets its own key rotary"
    rotary = (mixer.memory for mixer in model.mixers if isinstance(mixer, MemoryMixer) and mixer.rule.rotary)
    return f"{' and '.join(dict.fromkeys(rotary))} rotates its queries and keys in any case"

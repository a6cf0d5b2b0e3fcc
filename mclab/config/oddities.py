"""Harmless settings of a run that a researcher may not have meant."""

from collections.abc import Iterator

from mclab.config.lengths import Lengths
from mclab.config.model.attention import AttentionMixer
from mclab.config.model.base import taps_beyond
from mclab.config.model.lm import ModelConfig
from mclab.config.model.memory import MemoryMixer
from mclab.config.model.pattern import MIXER, mixer_of
from mclab.config.run import RunConfig
from mclab.config.variants import turns

#: Steps of which every turn is looked at.
_MOST_TURNS = 100_000


def oddities(run: RunConfig) -> list[str]:
    """A line for each, from the dotted path of its key on."""
    lengths = Lengths.of(run)
    return [
        *run.task.oddities,
        *_of_model(run.model, lengths),
        *_of_training(run),
        *_of_looks(run),
        *_of_cache(run),
    ]


def _of_model(model: ModelConfig, lengths: Lengths) -> Iterator[str]:
    unused = model.pattern[model.layers :]
    if unused:
        yield (
            f"model.pattern: has {len(model.pattern)} words for {model.layers} layers: "
            f"{', '.join(unused)} stands for none"
        )
    for word in dict.fromkeys(model.words):
        lines = mixer_of(word, model.mixer).oddities(lengths)
        yield from (f"model.mixer.{line}" if word == MIXER else _of_word(word, line) for line in lines)
    if any("conv" in mixer.obeys for mixer in model.mixers):
        yield from (f"model.{line}" for line in taps_beyond("conv", model.conv, lengths))
    if model.position == "rotary" and not any("position" in mixer.obeys for mixer in model.mixers):
        yield f"model.position: rotary turns queries and keys, and {_why(model)}: as with none"
    if model.position == "learned" and lengths.trained < lengths.longest:
        yield (
            f"model.position: learned positions beyond {lengths.training} are never trained, and a test has "
            f"{lengths.longest} tokens"
        )


def _of_word(word: str, line: str) -> str:
    """A mixer's line about the key that the word's number gives."""
    key, _, told = line.partition(": ")
    bare = f"as {word.partition('/')[0]} alone"
    told = told.partition(" ")[2].replace("a token sees all before it, as with null", bare)
    return f"model.pattern: the {key} of {word} {told}"


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
    if train.steps < min(sum(weights), _MOST_TURNS):  # of more steps than weights each part has its turns
        order = set(turns(weights, train.steps))
        unseen = [part for place, part in enumerate(run.mix) if place not in order]
        names = ", ".join(name for part in unseen for name in part.slices)
        if unseen:
            yield f"train.task: {names} has no turn in train.steps {train.steps}: no step is trained on it"


def _of_looks(run: RunConfig) -> Iterator[str]:
    """Of what happens every so many steps, of which there are fewer."""
    train, every = run.train, run.eval.every
    if train.stop_at is not None and every >= train.steps:
        yield (
            f"train.stop_at: the first look at valid is after eval.every {every} of train.steps {train.steps}: nothing "
            f"stops before the end"
        )
    elif every > train.steps and every != type(run.eval).model_fields["every"].default:
        yield f"eval.every: {every} is above train.steps {train.steps}: valid is looked at once, at the end"
    if train.checkpoint_every is not None and train.checkpoint_every >= train.steps:
        yield (
            f"train.checkpoint_every: {train.checkpoint_every} is not below train.steps {train.steps}: there is no "
            f"checkpoint to go on from"
        )


def _of_cache(run: RunConfig) -> Iterator[str]:
    """Of a cache after training that is never filled."""
    longest = max(run.task.length, *(exam.task.length for exam in run.exams), 0)
    if run.eval.post_training is not None and run.cached_after >= longest:
        key = "eval.post_training" if run.eval.post_segment is None else "eval.post_segment"
        yield (
            f"{key}: a state is kept every {run.cached_after} tokens and the longest test has {longest}: "
            f"nothing is ever cached; add longer tests (eval.task) or take a smaller eval.post_segment"
        )


def _why(model: ModelConfig) -> str:
    """What makes the layers deaf to the model's position."""
    if not any("heads" in mixer.obeys for mixer in model.mixers):
        return "no layer has any"
    own = any(isinstance(mixer, AttentionMixer) for mixer in model.mixers)
    if own:
        return "every attention has its own rotary"
    rotary = (mixer.memory for mixer in model.mixers if isinstance(mixer, MemoryMixer) and mixer.rule.rotary)
    return f"{' and '.join(dict.fromkeys(rotary))} turns its own in any case"

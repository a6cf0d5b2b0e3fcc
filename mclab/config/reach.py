"""Keys that may not reach beyond some of a run's sequences: what they make would depend on the length."""

from collections.abc import Iterator

from mclab.config.lengths import Lengths
from mclab.config.model.attention import AttentionMixer
from mclab.config.model.canonical import canonical_model
from mclab.config.model.conv import ConvMixer
from mclab.config.model.memory import MemoryMixer
from mclab.config.model.pattern import MIXER, mixer_of
from mclab.config.run import RunConfig


def length_faults(run: RunConfig) -> Iterator[tuple[str, str]]:
    """Key and reason, for each key by which a layer would be another function at one length than at another."""
    lengths = Lengths.of(run)
    for word in dict.fromkeys(run.model.words):
        mixer = mixer_of(word, run.model.mixer)
        if isinstance(mixer, MemoryMixer) and mixer.fitted(lengths.shortest) is not mixer:
            yield from _chunk(run, word, mixer, lengths)
        if isinstance(mixer, ConvMixer):
            yield from _taps("model.mixer.kernel" if word == MIXER else "model.pattern", mixer.kernel, lengths)
        if isinstance(mixer, AttentionMixer) and mixer.conv is not None:
            yield from _taps("model.mixer.conv" if word == MIXER else "model.pattern", mixer.conv, lengths)
    if any("conv" in mixer.obeys for mixer in run.model.mixers):
        yield from _taps("model.conv", run.model.conv, lengths)


def _chunk(run: RunConfig, word: str, mixer: MemoryMixer, lengths: Lengths) -> Iterator[tuple[str, str]]:
    """Where sequences are shorter than a chunk their tokens divide the step size (docs/equations.md#step-sizes): that
    has to be one number in training and in all tests."""
    size, most = mixer.tokens_a_chunk, lengths.shortest
    key, told, way = "model.mixer.chunk", f"{size}", f"take at most {most}"
    if word != MIXER:
        key, told = "model.pattern", f"{word} has chunks of {size} tokens, which"
        way = f"put {MIXER} there and model.mixer: {{memory: {mixer.memory}, aggregate: none, chunk: {most}}}"
    if lengths.shortest < lengths.longest:
        yield (
            key,
            (
                f"{told} is above the {most} tokens of the shortest sequences, and the longest have {lengths.longest}: "
                f"the step size is divided by the tokens of a chunk, and would depend on the length; {way}"
            ),
        )
    elif any(layer.fitted(most) is not layer for layer in canonical_model(run.model, most).mixers):
        # Two kinds of layers whose chunks are cut would have to be told apart, and only model.mixer has keys.
        yield key, f"{told} is above task.length {most}, and another layer's is too; {way}, or task.length {size}"


def _taps(key: str, taps: int, lengths: Lengths) -> Iterator[tuple[str, str]]:
    """Taps that no training sequence reaches keep the values that they start with."""
    if lengths.trained < min(taps, lengths.longest):
        yield (
            key,
            (
                f"{taps} taps reach beyond the {lengths.trained} tokens of training, and the longest test has "
                f"{lengths.longest}: it would be read with taps that were never trained; take at most {lengths.trained}"
            ),
        )

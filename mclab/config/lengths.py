"""The sequence lengths of a run, and the keys whose values need longer sequences than some that the run has."""

from collections.abc import Iterator
from dataclasses import dataclass

from mclab.config.ids import canonical_model
from mclab.config.model import AttentionMixer, ConvMixer, MemoryMixer
from mclab.config.model.mixers import MIXER, mixer_of
from mclab.config.run import RunConfig


@dataclass(frozen=True)
class Lengths:
    """The sequence lengths of a run in tokens.

    `own` is that of the task itself, `trained` the longest in training; `shortest` and `longest` are over training and
    all tests.
    """

    own: int
    trained: int
    shortest: int
    longest: int

    @classmethod
    def of(cls, run: RunConfig) -> "Lengths":
        """Return the lengths of `run` in training, validation and test."""
        trained = [part.task.length for part in run.mix]
        every = [run.task.length, *trained, *(variant.task.length for variant in run.test_variants)]
        return cls(run.task.length, max(trained), min(every), max(every))

    @property
    def most(self) -> str:
        """A text for messages about the longest sequences, e.g. `task.length 64`."""
        return (
            f"task.length {self.own}"
            if self.longest == self.own
            else f"the {self.longest} tokens of the longest sequences"
        )

    @property
    def training(self) -> str:
        """Text for a message about the longest training sequences: `training's 64 tokens`."""
        return f"the {self.trained} tokens of the training sequences"


def length_faults(run: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield (key, reason) for each key that would make a layer compute a different function at different lengths."""
    lengths = Lengths.of(run)
    for name in dict.fromkeys(run.model.layer_names):
        mixer = mixer_of(name, run.model.mixer)
        if isinstance(mixer, MemoryMixer) and mixer.fitted(lengths.shortest) is not mixer:
            yield from _chunk_faults(run, name, mixer, lengths)
        if isinstance(mixer, ConvMixer):
            yield from _kernel_faults("model.mixer.kernel" if name == MIXER else "model.pattern", mixer.kernel, lengths)
        if isinstance(mixer, AttentionMixer) and mixer.conv is not None:
            yield from _kernel_faults("model.mixer.conv" if name == MIXER else "model.pattern", mixer.conv, lengths)
    if any("conv" in mixer.model_keys for mixer in run.model.mixers):
        yield from _kernel_faults("model.conv", run.model.conv, lengths)


def _chunk_faults(run: RunConfig, name: str, mixer: MemoryMixer, lengths: Lengths) -> Iterator[tuple[str, str]]:
    """Yield (key, reason) if a chunk of `mixer` is longer than some sequences.

    In such a sequence the step size is divided by the tokens of the sequence and not of the chunk
    (docs/equations.md#step-sizes), but the divisor must be the same in training and in all tests.
    """
    size, most = mixer.tokens_a_chunk, lengths.shortest
    key, subject, way = "model.mixer.chunk", f"a chunk of {size} tokens", f"take a chunk of at most {most}"
    if name != MIXER:
        key, subject = "model.pattern", f"a chunk of {name} ({size} tokens)"
        way = f"write {MIXER} in its place and model.mixer: {{memory: {mixer.memory}, aggregate: none, chunk: {most}}}"
    if lengths.shortest < lengths.longest:
        reason = (
            f"{subject} is longer than the shortest sequences ({most} tokens), and the longest have {lengths.longest} "
            "tokens; the step size is divided by the number of tokens in a chunk, so that it would depend on the "
            f"sequence; {way}"
        )
        yield key, reason
    elif any(layer.fitted(most) is not layer for layer in canonical_model(run.model, most).mixers):
        # Two different layers with a shortened chunk would each need their own keys, but only model.mixer has keys.
        reason = f"{subject} is longer than task.length {most}, and so is a chunk of another layer"
        yield key, f"{reason}; {way}, or task.length {size}"


def _kernel_faults(key: str, size: int, lengths: Lengths) -> Iterator[tuple[str, str]]:
    """Yield (key, reason) if a test uses kernel entries that training never reaches, so that they are not trained."""
    if lengths.trained < min(size, lengths.longest):
        reason = (
            f"a kernel of {size} is longer than the training sequences ({lengths.trained} tokens), and the longest "
            f"test has {lengths.longest} tokens, so that the test would use kernel entries that were never trained; "
            f"take a kernel of at most {lengths.trained}"
        )
        yield key, reason

"""Harmless settings of a memory and its cache that may not be meant on sequences of some lengths."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mclab.config.lengths import Lengths

if TYPE_CHECKING:
    from mclab.config.model.memory import MemoryMixer


def oddities_of(mixer: "MemoryMixer", lengths: Lengths) -> Iterator[str]:
    """A line for each that begins with the key."""
    if mixer.hybrid != "none" and mixer.window >= lengths.longest:
        yield f"window: {mixer.window} is not below {lengths.most}: the attention sees all before it"
    elif mixer.hybrid != "none" and mixer.window >= lengths.trained:
        yield f"window: {mixer.window} is not below {lengths.training}: it leaves tokens out in tests alone"
    usual = mixer.chunk == type(mixer).model_fields["chunk"].default
    if mixer.fitted(lengths.own) is not mixer and not usual:
        yield f"chunk: {mixer.chunk} is above task.length {lengths.own}, where chunks end: as with {lengths.own}"
    elif mixer.rule.descends and mixer.tokens_a_chunk < mixer.chunk and not usual:
        yield f"chunk: {mixer.chunk} is above {_segments_are(mixer)}, where chunks end: as with {mixer.longest_segment}"
    if mixer.aggregate != "none":
        yield from _of_cache(mixer, lengths)


def _of_cache(mixer: "MemoryMixer", lengths: Lengths) -> Iterator[str]:
    segments, learned = mixer.segments(lengths.longest), mixer.segments(lengths.trained)
    if mixer.segmentation == "listed" and segments < len(mixer.segment_lengths):
        yield f"segment_lengths: only the first {segments} begin within {lengths.most}"
    if segments == 1:
        yield f"{_segments_are(mixer)} is not below {lengths.most}: nothing is ever cached"
        return
    if learned == 1:
        yield (
            f"{_segments_are(mixer)} is not below {lengths.training}: a cache is read in tests alone, by weights "
            f"that nothing has taught"
        )
    if mixer.read_gate == "input" and learned < mixer.segments(lengths.own):
        yield (
            f"gate: input has a weight for each segment of task.length {lengths.own}, and {lengths.training} train "
            f"no more than {learned}"
        )
    if mixer.segmentation == "log" and segments == 2:
        yield f"segmentation: log of 2 segments keeps what constant does; {lengths.most} hold no more"
    if mixer.aggregate == "ssc" and mixer.k >= _most_kept(mixer, segments):
        yield f"k: {mixer.k} of at most {_most_kept(mixer, segments)} kept memories: ssc reads them all, as grm does"
    elif mixer.aggregate == "ssc" and mixer.k >= _most_kept(mixer, learned) > 0:
        yield (
            f"k: {mixer.k} of at most {_most_kept(mixer, learned)} kept memories in {lengths.training}: ssc selects "
            f"in tests alone"
        )


def _segments_are(mixer: "MemoryMixer") -> str:
    listed = mixer.segmentation == "listed"
    return f"segment_lengths: {mixer.segment_lengths[0]}" if listed else f"segment: {mixer.segment}"


def _most_kept(mixer: "MemoryMixer", segments: int) -> int:
    """Most kept memories that a token of so many segments sees."""
    return segments - 1 if mixer.segmentation != "log" else max(n.bit_count() for n in range(segments))

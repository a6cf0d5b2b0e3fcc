"""From the columns of a layer's weights to the strip that shows them: which cell is which memory."""

from collections.abc import Sequence

from mclab.caching.segment import Segments, segments_of
from mclab.config.model import MemoryMixer
from mclab.report.characters import Strip


def strip(mixer: MemoryMixer, length: int, weights: Sequence[float], at: int, needs: Sequence[int]) -> Strip:
    """What the query at `at` reads, a cell for each memory that it sees, the oldest first and the online one last.

    `weights` is one row [columns] of what `caching/record_weights.py` saw in a sequence of `length` tokens. A cell is
    held where its memory was written with one of the tokens `needs`. Cells behind those that the query sees are zero:
    constant and listed segments fill the strip up to the last segment, buckets up to the most that any query of the
    sequence sees.
    """
    segments = segments_of(mixer, length)
    block, blocks = at // segments.segment, {place // segments.segment for place in needs}
    run = next(number for number, (_, end) in enumerate(segments.runs) if block < end)
    online = segments.columns - 1 if mixer.segmentation == "log" else run
    cells = [*_kept(segments, block), (segments.runs[run], online)]
    held = {cell for cell, (span, _) in enumerate(cells) if any(span[0] <= one < span[1] for one in blocks)}
    seen = [weights[column] for _, column in cells]
    most = _most(segments) if mixer.segmentation == "log" else segments.columns
    return Strip([*seen, *[0.0] * (most - len(seen))], len(seen), frozenset(held))


def _kept(segments: Segments, block: int) -> list[tuple[tuple[int, int], int]]:
    """Blocks and column of each kept memory that the tokens of `block` read, from the oldest."""
    each = zip(segments.spans, segments.readers, strict=True)
    return sorted((span, column) for column, (span, (first, end)) in enumerate(each) if first <= block < end)


def _most(segments: Segments) -> int:
    """Memories that a query of buckets can see at most."""
    return max(n.bit_count() for n in range(segments.count)) + 1

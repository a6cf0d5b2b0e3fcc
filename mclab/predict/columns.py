"""From the columns of a layer's weights to the strip that shows them: which cell is which memory."""

from collections.abc import Sequence

from mclab.caching.segment import SEGMENTS, Segments
from mclab.config.model import MemoryMixer
from mclab.report.strip import Strip


def strip(mixer: MemoryMixer, length: int, weights: Sequence[float], at: int, needs: Sequence[int]) -> Strip:
    """What the query at `at` reads, a cell for each memory that it sees, the oldest first and the online one last.

    `weights` is one row [columns] of what `caching/watch.py` saw in a sequence of `length` tokens. A cell is held where
    its memory was written with one of the tokens `needs`. Cells behind those that the query sees are zero: constant
    segments fill the strip up to the last segment, buckets up to the most that any query of the sequence sees.
    """
    segments = SEGMENTS[mixer.segmentation](length, mixer.segment)
    block, blocks = at // mixer.segment, {place // mixer.segment for place in needs}
    online = block if segments.single else segments.columns - 1
    cells = [*_kept(segments, block), ((block, block + 1), online)]
    held = {cell for cell, (span, _) in enumerate(cells) if any(span[0] <= one < span[1] for one in blocks)}
    seen = [weights[column] for _, column in cells]
    return Strip([*seen, *[0.0] * (_most(segments) - len(seen))], len(seen), frozenset(held))


def _kept(segments: Segments, block: int) -> list[tuple[tuple[int, int], int]]:
    """Blocks and column of each kept memory that the tokens of `block` read, from the oldest."""
    each = zip(segments.spans, segments.readers, strict=True)
    return sorted((span, column) for column, (span, (first, end)) in enumerate(each) if first <= block < end)


def _most(segments: Segments) -> int:
    """Memories that a query can see at most."""
    return segments.count if segments.single else max(n.bit_count() for n in range(segments.count)) + 1

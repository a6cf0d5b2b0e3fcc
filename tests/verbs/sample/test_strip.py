"""Which cell of a strip is which memory."""

import pytest
import torch

from mclab.caching.record_weights import recording
from mclab.caching.segment import LogSegments
from mclab.config.model import MemoryMixer
from mclab.report.characters import DIGITS, cells
from mclab.tasks import TASKS
from mclab.train.weights import load_model
from mclab.verbs.sample.answers import Head
from mclab.verbs.sample.needed import strip
from mclab.verbs.sample.text import predictions_text
from tests.verbs.sample.bench import small_run
from tests.verbs.sample.test_answers import look

#: The columns of 7 blocks: buckets by size, then by place, and the online memory.
COLUMNS = ["0", "2", "4", "01", "45", "0123", "online"]


def shown(segmentation, length, at, *needs):
    """The columns in the order of the cells, and the cells that are held."""
    mixer = MemoryMixer(segment=2, segmentation=segmentation)
    found = strip(mixer, length, list(range(1, 8)), at, needs)
    return [int(weight) - 1 for weight in found.weights], found.visible, sorted(found.held)


def test_constant_segments_are_the_cells_themselves():
    assert shown("constant", 14, 7, 2, 3) == ([0, 1, 2, 3, -1, -1, -1], 4, [1])
    assert shown("constant", 13, 12, 0, 12) == ([*range(7)], 7, [0, 6])


def test_listed_segments_are_the_cells_too():
    """Segments of 2, 6, 4, 4 tokens: the query at 9 is in the third; what stands at 7 is in the second."""
    mixer = MemoryMixer(segmentation="listed", segment_lengths=[2, 6, 4])
    found = strip(mixer, 15, [0.1, 0.2, 0.7, 0.0], 9, [7, 1])
    assert (list(found.weights), found.visible, found.held) == ([0.1, 0.2, 0.7, 0.0], 3, {0, 1})
    assert strip(mixer, 15, [1.0, 0.0, 0.0, 0.0], 1, [0]).held == {0}


@pytest.mark.parametrize(
    ("block", "seen"),
    [
        (0, ["online"]),
        (1, ["0", "online"]),
        (2, ["01", "online"]),
        (3, ["01", "2", "online"]),
        (4, ["0123", "online"]),
        (5, ["0123", "4", "online"]),
        (6, ["0123", "45", "online"]),
    ],
)
@pytest.mark.parametrize("length", [13, 14])
def test_buckets_stand_in_the_order_of_the_sequence(block, seen, length):
    """Every block before the query's is held by one cell, that of the bucket which holds it; at most 3 cells."""
    for place in range(block * 2 + 1):
        columns, visible, held = shown("log", length, block * 2, place)
        assert [COLUMNS[column] for column in columns[:visible]] == seen
        assert columns[visible:] == [-1] * (3 - visible)
        (cell,) = held
        assert (str(place // 2) in seen[cell]) if place // 2 < block else cell == visible - 1
    assert shown("log", length, block * 2)[2] == []


def test_a_trained_model_with_buckets_is_looked_at(tmp_path):
    """Eight segments of 8 tokens, at most three buckets: four cells, the weights of the pass itself, and a legend."""
    model = {"heads": 2, "mixer": {"segment": 8, "segmentation": "log"}}
    found = look(tmp_path, small_run(task={"vocab": 64, "length": 64, "pairs": [8]}, model=model), count=3)
    assert found.heads == [Head(0, 0), Head(0, 1)]
    for sample in found.samples:
        for query in sample.queries:
            for each in query.strips.values():
                assert len(each.weights) == 4
                assert each.visible == (query.at // 8).bit_count() + 1
                assert sum(each.weights[: each.visible]) == pytest.approx(1, abs=1e-6)  # fp32 rows sum to 1 within 1e-6
                assert len(each.held) == 1
                (line,) = cells(each, DIGITS)
                assert line.count("[") == line.count("]") == 1
    assert "of the weight is on" in predictions_text(found, DIGITS)


def test_what_is_marked_is_the_column_of_the_pass_that_holds_the_answer(tmp_path):
    run = small_run(task={"length": 32, "pairs": [4]}, model={"mixer": {"segment": 2, "segmentation": "log"}})
    found = look(tmp_path, run, count=8)
    model, _ = load_model(tmp_path)
    batch = TASKS["mqar"].batch(run.task, [run.seed], "test", 0, 8, "cpu")
    with recording(model) as seen, torch.no_grad():
        model(batch.tokens, batch.positions)
    segments = LogSegments(32, 2)
    for b, sample in enumerate(found.samples):
        for query in sample.queries:
            (need,) = query.needs
            columns = [
                column
                for column, (span, readers) in enumerate(zip(segments.spans, segments.readers, strict=True))
                if need // 2 in range(*span) and query.at // 2 in range(*readers)
            ] or [segments.columns - 1]
            (column,) = columns
            row = seen[0].weights[b, query.at]
            assert query.strips[Head(0, 0)].share == pytest.approx(row[column].item(), abs=1e-6)  # fp32 sums, as above
            assert row.max() - row[row > 0].min() > 1e-3, "the weights differ to begin with"

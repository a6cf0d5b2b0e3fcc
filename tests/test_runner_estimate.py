"""What a guess at a run's seconds knows of its memory."""

import pytest

from mclab.config.parse import parse_run
from mclab.runner.estimate import seconds


def guess(length: int = 256, **mixer: object) -> float:
    task = {"length": length, "pairs": 4}
    return seconds([parse_run({"task": task, "model": {"mixer": {"memory": "titans", "segment": 32, **mixer}}})])


def test_a_deep_memory_costs_several_times_a_linear_one() -> None:
    assert 3 * guess(memory="linear") < guess() < 20 * guess(memory="linear")
    assert 2 * guess() < guess(depth=3) < 6 * guess()
    assert guess(depth=1) < guess() / 2
    assert guess(memory="retnet") < 2 * guess(memory="linear")


def test_more_to_write_or_to_read_costs_more() -> None:
    assert guess(chunk=1) > 3 * guess()
    assert guess(init="checkpoint") > guess()
    assert guess(aggregate="none") < guess() < guess(segment=8)
    assert guess(1024, segmentation="log") < guess(1024)
    assert guess(1024, segmentation="log", init="checkpoint") < guess(1024, segmentation="log")


def test_one_segment_costs_no_more_than_none() -> None:
    """But for the gate; a chunk beyond the segment is the segment."""
    assert guess(aggregate="residual", segment=256) == pytest.approx(guess(aggregate="none"))
    assert guess(chunk=999) == guess(chunk=32)


@pytest.mark.parametrize("keys", [{"name": "attention", "window": None}, {"memory": "linear"}, {"memory": "vector"}])
def test_what_has_no_fast_weights_pays_for_none(keys: dict[str, object]) -> None:
    if "name" in keys:
        with_mixer = {"task": {"length": 256}, "model": {"mixer": keys}}
        assert seconds([parse_run(with_mixer)]) < guess()
    else:
        assert guess(**keys, chunk=1) == guess(**keys)

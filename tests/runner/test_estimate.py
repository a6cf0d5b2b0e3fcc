"""What a guess at a run's seconds knows of its memory."""

import pytest

from mclab.config.parse import parse_run
from mclab.runner.estimate import seconds


def guess(length: int = 256, **mixer: object) -> float:
    return of_mixer({"memory": "titans", "segment": 32, **mixer}, length)


def of_mixer(mixer: dict[str, object], length: int = 256, heads: int = 1) -> float:
    task = {"length": length, "pairs": 4}
    return seconds([parse_run({"task": task, "model": {"heads": heads, "mixer": mixer}})])


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


def test_mixers_cost_what_they_form_of_each_token() -> None:
    """Memora every token's weights, rwkv7 rates of every channel, log-linear attention a chunk's pairs in each head."""
    assert 1.5 * guess(memory="gated_delta") < guess(memory="memora") < 3 * guess(memory="gated_delta")
    assert guess(memory="gated_delta") < guess(memory="rwkv7") < 1.5 * guess(memory="gated_delta")
    paired = guess(memory="gated_delta", aggregate="none")
    levels = {rule: of_mixer({"name": "log_linear", "rule": rule}) for rule in ("mamba2", "gated_delta")}
    assert levels["mamba2"] < paired < levels["gated_delta"] < 3 * levels["mamba2"]


def test_more_heads_cost_more_where_each_reads_for_itself() -> None:
    for mixer in ({"name": "log_linear", "rule": "gated_delta"}, {"segment": 8}):
        one, four = of_mixer(mixer), of_mixer(mixer, heads=4)
        assert 1.4 * one < four < 4 * one


def test_one_segment_costs_no_more_than_none() -> None:
    """But for the gate; a chunk beyond the segment is the segment."""
    assert guess(aggregate="residual", segment=256) == pytest.approx(guess(aggregate="none"))
    assert guess(chunk=999) == guess(chunk=32)


@pytest.mark.parametrize("keys", [{"name": "attention", "window": None}, {"memory": "linear"}, {"memory": "vector"}])
def test_what_has_no_fast_weights_pays_for_none(keys: dict[str, object]) -> None:
    if "name" in keys:
        assert of_mixer(keys) < guess()
    else:
        assert guess(**keys, chunk=1) == guess(**keys)

"""Rules of a run that look at its task, its exams and its cache together."""

from typing import Any

import pytest

from mclab.config.ids import canonical, run_id
from mclab.config.model import MemoryMixer
from mclab.config.parse import parse_run
from mclab.config.strict import ConfigError
from mclab.config.variants import check_test_variants
from mclab.config.warnings import warnings_of


@pytest.mark.parametrize("preset", ["niah1", "mk2"])
@pytest.mark.parametrize("given", [{}, {"haystack": "text"}, {"needles": 8}])
@pytest.mark.parametrize("change", [{"preset": "mk2"}, {"haystack": "text"}, {"depth": [10]}])
def test_exams_and_mixes_are_those_of_the_task_as_written(preset: str, given: dict[str, Any], change: dict[str, Any]):
    """A variant changes keys of the task that stands there, not of the form that stands for all equal ones."""
    task = {"name": "niah", "preset": preset, "length": 200, **given}
    run = parse_run({"task": task, "eval": {"task": change}, "train": {"task": [change, {"depth": [90]}]}})
    for found, written in zip(
        (canonical(run).test_variants, canonical(run).mix), (run.test_variants, run.mix), strict=True
    ):
        assert [each.task.canonical() for each in found] == [each.task.canonical() for each in written]


def test_a_cache_after_training_may_not_move_the_chunks():
    """States kept off the chunks' ends would change what the online memory itself is."""
    keys = {"aggregate": "none", "memory": "titans"}
    with pytest.raises(
        ConfigError, match=r"eval\.post_segment: 40 is not a multiple of model\.mixer\.chunk 16.*take .* 48"
    ):
        parse_run({"model": {"mixer": keys}, "eval": {"post_training": 2, "post_segment": 40}})
    for other in ({"memory": "dla", "depth": 1}, {"memory": "swla"}, {"memory": "titans", "chunk": 8}):
        parse_run({"model": {"mixer": keys | other}, "eval": {"post_training": 2, "post_segment": 40}})


def test_depths_that_are_one_place_are_told():
    (line,) = warnings_of(parse_run({"task": {"name": "niah", "length": 20}, "model": {"mixer": {"segment": 4}}}))
    assert line.startswith("task.depth: depths 25 and 50 fall on the same one of the 3 places at task.length 20")


def test_an_exam_of_ar_that_differs_in_training_alone_is_refused():
    run = parse_run({"task": {"name": "ar"}, "eval": {"task": {"loss": "answer"}}})
    with pytest.raises(ValueError, match="the same as pairs=19"):
        check_test_variants(run.task, run.test_variants, 8)


def test_arguments_of_a_module_have_one_form():
    one, other = (
        {"name": "module", "module": "a.B", "args": args} for args in (["b=1", "a=word"], {"a": "word", "b": 1})
    )
    assert parse_run({"model": {"mixer": one}}) == parse_run({"model": {"mixer": other}})


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            {"connector": "shared"},
            "model.mixer.pool_of: connector shared compares queries with pooled keys, but pool_of is inputs; "
            "take pool_of keys or connector own",
        ),
        (
            {"aggregate": "ssc", "gate": "input", "route": "hard"},
            "model.mixer.pool_of: aggregate ssc with route hard and gate input compares queries with pooled keys, but "
            "pool_of is inputs; take pool_of keys, another route, or gate context",
        ),
    ],
)
def test_queries_are_compared_with_keys_alone(keys, line):
    with pytest.raises(ConfigError) as caught:
        parse_run({"model": {"mixer": {"pool_of": "inputs", **keys}}})
    assert str(caught.value) == line
    parse_run({"model": {"mixer": keys}})


def test_listed_segments_need_their_lengths():
    with pytest.raises(ConfigError) as caught:
        parse_run({"model": {"mixer": {"segmentation": "listed"}}})
    assert str(caught.value) == (
        "model.mixer.segment_lengths: segmentation listed needs the lengths of the segments; give them, e.g. "
        "[8, 16, 40], or take segmentation constant"
    )


@pytest.mark.parametrize(
    ("lengths", "line"),
    [
        ([8, 16, 40], None),
        (
            [8, 16, 40, 20],
            (
                "model.mixer.segment_lengths: only the first 3 lengths are used, because later segments begin beyond "
                "task.length 64"
            ),
        ),
        ([64, 8], "model.mixer.segment_lengths: 64 is not below task.length 64, so that nothing is ever cached"),
    ],
)
def test_what_a_list_of_lengths_does_not_reach_is_told(lengths, line):
    run = parse_run({"model": {"mixer": {"segmentation": "listed", "segment_lengths": lengths}}})
    told = list(warnings_of(run))
    assert (line in told) if line else told == []


@pytest.mark.parametrize("length", [1, 7, 8, 9, 24, 25, 64, 65, 104, 105, 300])
def test_the_last_length_repeats(length):
    """Counted token by token."""
    mixer = MemoryMixer(segmentation="listed", segment_lengths=[8, 16, 40])
    ends = [8, 24, 64, 104, 144, 184, 224, 264, 304]
    assert mixer.segments(length) == next(n for n, end in enumerate(ends, 1) if length <= end)


def test_where_nothing_is_scored_any_pool_will_do():
    """The pool is inert there, and the connector too."""
    for keys in ({"gate": "input"}, {"aggregate": "residual"}, {"aggregate": "none"}):
        run = parse_run({"model": {"mixer": {"pool_of": "inputs", "connector": "shared", **keys}}})
        assert run_id(run) == run_id(parse_run({"model": {"mixer": keys}}))


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (
            {},
            "eval.post_training: this key is for a model trained without a cache, but aggregate is grm; "
            "take model.mixer.aggregate none",
        ),
        (
            {"mixer": {"aggregate": "ssc"}, "pattern": ["mixer", "titans"]},
            "eval.post_training: this key is for a model trained without a cache, but aggregate is ssc; "
            "take model.mixer.aggregate none",
        ),
        (
            {"mixer": {"name": "attention"}},
            "eval.post_training: this key keeps states of a memory, but mixer attention has none; "
            "leave it out or take model.mixer.name memory",
        ),
    ],
)
def test_a_cache_after_training_is_for_memories_trained_without(model: dict[str, Any], line: str):
    with pytest.raises(ConfigError) as caught:
        parse_run({"model": model, "eval": {"post_training": 1}})
    assert str(caught.value) == line

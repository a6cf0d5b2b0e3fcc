"""Settings that may not be meant are named, and only those."""

from typing import Any

import pytest

from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.warnings import warnings_of


def memory(**keys: Any) -> RunConfig:
    return parse_run({"model": {"mixer": keys}})


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({}, None),
        ({"segment": 64}, "model.mixer.segment"),
        ({"segment": 100}, "model.mixer.segment"),
        ({"aggregate": "ssc", "k": 7}, "model.mixer.k"),
        ({"aggregate": "ssc", "k": 6}, None),
        ({"aggregate": "ssc", "k": 3, "segmentation": "log"}, "model.mixer.k"),
        ({"aggregate": "ssc", "k": 2, "segmentation": "log"}, None),
        ({"segment": 32, "segmentation": "log"}, "model.mixer.segmentation"),
        ({"segment": 31, "segmentation": "log"}, None),
        ({"segment": 64, "segmentation": "log"}, "model.mixer.segment"),
        ({"memory": "titans"}, None),
        ({"memory": "titans", "chunk": 8}, None),
        ({"memory": "titans", "chunk": 32}, "model.mixer.chunk"),
        ({"memory": "linear", "chunk": 32}, None),
        ({"memory": "titans", "chunk": 32, "aggregate": "none"}, None),
        ({"aggregate": "none", "segment": 64}, None),
        ({"window": 64}, None),
        ({"hybrid": "mal", "window": 63}, None),
        ({"hybrid": "mag", "window": 64}, "model.mixer.window"),
        ({"name": "attention"}, None),
        ({"name": "attention", "window": 63}, None),
        ({"name": "attention", "window": 64}, "model.mixer.window"),
        ({"name": "attention", "window": 100}, "model.mixer.window"),
    ],
)
def test_a_warning_names_the_key(keys: dict[str, Any], word: str | None):
    found = warnings_of(memory(**keys))
    assert [line.partition(":")[0] for line in found] == ([word] if word else [])


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            {"post_training": 1},
            "eval.post_training: a state is kept every 64 tokens, but the longest test has 64 tokens, ",
        ),
        ({"post_training": 1, "task": {"length": 128}}, None),
        (
            {"post_training": 1, "post_segment": 200, "task": {"length": 128}},
            "eval.post_segment: a state is kept every 200 tokens, but the longest test has 128 tokens, ",
        ),
        ({"post_training": 1, "post_segment": 63}, None),
        ({"post_segment": 200}, None),
    ],
)
def test_a_cache_after_training_that_is_never_filled(keys: dict[str, Any], line: str | None):
    found = warnings_of(parse_run({"model": {"mixer": {"aggregate": "none"}}, "eval": keys}))
    assert [text.startswith(line or "-") for text in found] == [True] * (line is not None)

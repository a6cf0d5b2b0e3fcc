"""Every word of the README's tables trains: alone and in a pack of two, cached in every way that is defined for it."""

from typing import Any, get_args

import pytest
import torch

from mclab.config.model import RULES, LevelRule
from mclab.config.model.mixers import layer_heads, mixer_heads
from mclab.config.parse import parse_run
from mclab.train import train_pack
from tests.registries import words
from tests.tolerances import PACK

TASK = {"vocab": 16, "length": 14, "pairs": [2]}
SIZES = {"dim": 8, "layers": 1, "heads": 2}


def mixers() -> dict[str, dict[str, Any]]:
    beside = {"memory": "titans", "window": 4}
    return {
        **{word: {"mixer": word} for word in mixer_heads()},
        **{f"pattern {word}": {"pattern": [word, "attention/4"], "layers": 2} for word in layer_heads()},
        **{
            f"{memory} {aggregate}": {"mixer": {"memory": memory, "aggregate": aggregate, "segment": 4, "chunk": 3}}
            for memory in RULES
            for aggregate in words("aggregate")
        },
        **{f"log_linear {rule}": {"mixer": {"name": "log_linear", "rule": rule}} for rule in get_args(LevelRule)},
        **{
            f"{hybrid} {aggregate}": {"mixer": {**beside, "hybrid": hybrid, "aggregate": aggregate}}
            for hybrid in words("hybrid")
            for aggregate in words("aggregate")
        },
    }


MIXERS = mixers()


def run_of(model, seed):
    return parse_run({
        "seed": seed,
        "task": TASK,
        "model": {**SIZES, **model},
        "train": {"steps": 3, "batch": 4, "precision": "fp64"},
        "eval": {"every": 3, "valid": 4, "test": 4},
    })  # fmt: skip


@pytest.mark.parametrize("word", MIXERS)
def test_trains_in_a_pack_of_two_as_alone(word):
    runs = [run_of(MIXERS[word], seed) for seed in (0, 1)]
    pack = train_pack(runs, device="cpu")
    (alone,) = train_pack(runs[1:], device="cpu")
    assert [outcome.status for outcome in (*pack, alone)] == ["done"] * 3
    losses = [torch.tensor([point["loss"] for point in outcome.curve]) for outcome in (*pack, alone)]
    assert all(each.isfinite().all() for each in losses)
    torch.testing.assert_close(losses[1], losses[2], atol=PACK, rtol=0)
    assert not torch.equal(losses[0], losses[1])

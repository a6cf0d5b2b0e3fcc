"""What stored runs say about the time that others take."""

from collections.abc import Mapping
from math import exp, log, sqrt
from typing import Any

import pytest

from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.runner.estimate import seconds
from mclab.runner.history import History
from tests.stored import stored_run

FACTS = {"device": "cpu", "device_name": None, "threads": 1, "pack": 1}


def config(dim: int = 32, seed: int = 0, train: Mapping[str, object] | None = None, **mixer: object) -> RunConfig:
    return parse_run({"seed": seed, "model": {"dim": dim, "mixer": mixer}, "train": train or {}})


def took(
    wall_s: float | None, run: RunConfig | None = None, facts: Mapping[str, object] = FACTS, **more: Any
) -> StoredRun:
    run = run or config()
    return stored_run(run, **{"wall_s": wall_s, "steps": run.train.steps, "provenance": facts} | more)


def off(history: History, run: RunConfig) -> float:
    """The factor either way."""
    work = history.work([run])
    assert work.high / work.seconds == pytest.approx(work.seconds / work.low)
    return work.high / work.seconds


def test_without_stored_runs_it_is_the_arithmetic_and_may_be_wrong_by_two_and_a_half() -> None:
    history = History()
    assert history.seconds(config()) == seconds([config()])
    assert off(history, config()) == pytest.approx(2.5)
    assert history.runs == 0


def test_a_shape_costs_the_median_of_its_stored_runs_whatever_seed_and_rate() -> None:
    history = History([took(wall, config(seed=seed)) for seed, wall in enumerate((40.0, 400.0, 50.0))])
    assert history.seconds(config(seed=9, train={"lr": 0.5})) == 50.0
    assert history.seconds(config(gate="none", aggregate="residual")) != 50.0
    assert history.runs == 3


def test_keys_that_change_nothing_make_no_other_shape() -> None:
    history = History([took(40.0, config(aggregate="none"))])
    assert history.seconds(config(aggregate="none", gate="input", segment=4)) == 40.0


def test_other_shapes_are_scaled_by_the_ratio_that_is_trusted_the_more_shapes_there_are() -> None:
    """Everything takes ten times longer: one shape is believed two thirds of the way, in logarithms, nine 18/19."""
    dims = range(16, 16 + 8 * 9, 8)
    many = [took(10 * seconds([config(dim)]), config(dim)) for dim in dims]
    unseen = config(128)
    for count in (1, 9):
        found = History(many[:count]).seconds(unseen) / seconds([unseen])
        assert found == pytest.approx(10 ** (count / (count + 0.5)))


def test_the_range_is_as_wide_as_stored_ratios_are_apart() -> None:
    """By the rule: the root of the mean of squares, log 2.5 being one of them; never less than 1.2 either way."""
    dims, unseen = range(16, 16 + 8 * 40, 8), config(512)
    alike = History([took(seconds([config(dim)]), config(dim)) for dim in dims])
    apart = History(
        [took(seconds([config(dim)]) * 3 ** (-1) ** number, config(dim)) for number, dim in enumerate(dims)]
    )
    few = History([took(seconds([config()]), config())])
    assert off(few, unseen) == pytest.approx(exp(log(2.5) / sqrt(2)))
    assert off(alike, unseen) == pytest.approx(1.2)
    assert off(apart, unseen) == pytest.approx(exp(sqrt((log(2.5) ** 2 + 40 * (2 * log(3)) ** 2) / 41)))


def test_a_shape_whose_runs_took_differently_long_has_a_wider_range() -> None:
    one, alike = History([took(50.0)]), History([took(50.0, config(seed=seed)) for seed in range(9)])
    apart = History([took(50.0 * 2 ** (seed % 3), config(seed=seed)) for seed in range(9)])
    assert off(one, config()) == pytest.approx(1.5)
    assert off(alike, config()) == pytest.approx(1.2)
    assert off(apart, config()) > 2


@pytest.mark.parametrize(
    "other",
    [
        took(400.0, facts={**FACTS, "device": "cuda"}),
        took(400.0, facts={**FACTS, "threads": 8}),
        took(400.0, facts={**FACTS, "device_name": "s390x"}),
        took(400.0, status="failed"),
        took(400.0, status="pruned"),
        took(400.0, status="diverged"),
        took(400.0, steps=3),
        took(None),
        took(0.0),
        took(400.0, science=0),
    ],
)
def test_runs_that_say_nothing_of_this_command_are_left_out(other: StoredRun) -> None:
    assert History([other], threads=1).seconds(config()) == seconds([config()])
    assert History([other, took(40.0, config(seed=1))], threads=1).seconds(config()) == 40.0


def test_what_a_record_does_not_tell_is_taken_to_fit() -> None:
    assert History([took(40.0, facts={})], threads=4).seconds(config()) == 40.0


def test_runs_that_may_stop_early_say_nothing_of_those_that_may_not() -> None:
    early = config(train={"stop_at": 0.9})
    history = History([took(10.0, early, steps=100), took(40.0)])
    assert (history.seconds(early), history.seconds(config())) == (10.0, 40.0)


def test_of_a_gpu_stored_runs_alone_tell() -> None:
    gpu = {**FACTS, "device": "cuda", "device_name": "H200"}
    assert not History(device="cuda").knows
    assert not History([took(40.0)], "cuda").knows
    history = History([took(2.0, facts=gpu)], "cuda:1")
    assert history.knows
    assert history.seconds(config()) == 2.0
    assert history.seconds(config(64)) == pytest.approx(2 * seconds([config(64)]) / seconds([config()]))


def test_a_total_of_runs_like_these() -> None:
    work = History([took(40.0)]).work([config(seed=1), config(seed=2)], total=5)
    assert (work.seconds, work.longest) == (pytest.approx(200.0), 40.0)
    assert History().work([]).seconds == 0

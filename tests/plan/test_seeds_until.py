"""`seeds: {until: told}`: what the plan keeps of it, and what it cannot be."""

import json

import pytest

from mclab.config.parse import parse_run
from mclab.config.strict import ConfigError
from mclab.plan.plan_json import as_dict, from_dict
from mclab.plan.seeds import LOOKS, SHARES, Until, resolution, shares_of
from tests.plan.conftest import Fault, Make


def test_looks_and_shares_have_defaults_and_the_plan_has_the_seeds_of_the_last_look(plan: Make):
    found = plan("{grid: {model.mixer.gate: [context, input]}, seeds: {until: told}}")
    assert found.until == Until(LOOKS, SHARES, None, found.until.step)
    assert found.seeds == tuple(range(20))
    assert found.first_seeds == tuple(range(5))
    assert len(set(found.first_runs())) == 10


def test_all_of_it_can_be_given(plan: Make):
    found = plan("seeds: {until: told, looks: [4, 6], shares: [0.01, 0.04], even: 0.02, from: 100}")
    assert (found.until.looks, found.until.shares, found.until.even) == ((4, 6), (0.01, 0.04), 0.02)
    assert found.seeds == (100, 101, 102, 103, 104, 105)
    assert found.until.share(6) == 0.04


@pytest.mark.parametrize("looks", [(5, 8, 12, 16, 20), (10, 16, 24, 32, 40), (3,), (6, 12, 18), (3, 4, 90)])
def test_shares_of_any_looks_add_up_to_the_error(looks):
    shares = shares_of(looks)
    assert sum(shares) == pytest.approx(0.05)
    assert min(shares) > 0
    assert len(shares) == len(looks)


def test_looks_at_the_same_parts_spend_the_same():
    assert shares_of((10, 16, 24, 32, 40)) == pytest.approx(SHARES)


def test_a_choice_is_made_before_the_first_look(plan: Make, fault: Fault):
    text = "select: {{over: {{train.lr: [0.01, 0.1]}}, seeds: {}}}\nseeds: {{until: told, looks: [5, 8]}}"
    assert plan(text.format(2)).first_seeds == (0, 1)
    assert "because the grid has 5" in fault(text.format(6))


def test_seeds_of_the_command_line_and_a_smoke_test_are_fixed(plan: Make):
    assert plan("seeds: {until: told}", seeds="0..4").until is None
    smoke = plan("seeds: {until: told}", smoke=True)
    assert (smoke.until, smoke.seeds) == (None, (0, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{until: tld}", 'seeds.until: must be the word told, as in {until: told}, got "tld"'),
        ("{looks: [5]}", "seeds.until: must be the word told, as in {until: told}, got null"),
        ("{until: told, look: [5]}", "seeds.look: unknown key; did you mean looks?"),
        ("{until: told, looks: [8, 5]}", "seeds.looks: the numbers must increase, got [8, 5]"),
        (
            "{until: told, looks: [2, 5]}",
            "seeds.looks: the first look has 2 seeds, but a test needs 3; begin with 3 or more",
        ),
        (
            "{until: told, looks: []}",
            "seeds.looks: must be a list of numbers of seeds, e.g. [5, 8, 12, 16, 20], got []",
        ),
        ("{until: told, looks: [5, 2000]}", "seeds.looks: must have at most 20 looks, each at no more than 1000 seeds"),
        (
            "{until: told, looks: [5, 8], shares: [0.05]}",
            "seeds.shares: must have one share for each of the 2 looks, got 1",
        ),
        (
            "{until: told, looks: [5, 8], shares: [0.05, 0.05]}",
            "seeds.shares: the shares add up to 0.1, which is more than the whole error of 0.05",
        ),
        ("{until: told, even: 2}", "seeds.even: must be a margin above 0 and below 1, e.g. 0.02, got 2"),
        ("{until: told, from: -1}", "seeds.from: must be the first seed, a whole number from 0, got -1"),
    ],
)
def test_what_it_cannot_be(fault: Fault, text: str, message: str):
    assert fault(f"question: x\nseeds: {text}") == f"g.yaml:2: {message}"


def test_a_stored_plan_keeps_it(plan: Make):
    found = plan("{grid: {model.mixer.gate: [context, input]}, seeds: {until: told, looks: [3, 5], even: 0.02}}")
    data = json.loads(json.dumps(as_dict(found)))
    again = from_dict(data)
    assert again.until == found.until
    assert again == found
    assert "until" not in as_dict(plan("seeds: 0..2"))
    for wrong in ({"looks": [5, 3]}, {"looks": [3, 6]}, {"shares": [0.05]}, {"even": 3.0}):
        with pytest.raises(ConfigError):
            from_dict({**data, "until": {**data["until"], **wrong}})


def test_the_resolution_is_one_answer_of_the_smallest_slice():
    mqar = {"task": {"name": "mqar", "pairs": [4, 8]}, "eval": {"test": 100}}
    assert resolution([parse_run(mqar)]) == pytest.approx(1 / (4 * 100) / 2)
    niah = {"task": {"name": "niah", "depth": [0, 50]}, "eval": {"test": 100}}
    assert resolution([parse_run(mqar), parse_run(niah)]) == pytest.approx(1 / 100 / 2)

"""Which seeds a grid runs."""

import pytest

from mclab.plan.grid import plan_from
from mclab.plan.overrides import seeds_from_text
from tests.plan.conftest import Fault, Make


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0..4", (0, 1, 2, 3, 4)),
        ("3..3", (3,)),
        ("0 .. 2", (0, 1, 2)),
        ("[7, 3]", (7, 3)),
        ("'0..1'", (0, 1)),
    ],
)
def test_seeds(plan: Make, text: str, seeds: tuple[int, ...]):
    found = plan(f"seeds: {text}")
    assert found.seeds == seeds
    assert tuple(found.cells[0].candidates[0].runs) == seeds


@pytest.mark.parametrize(
    ("text", "seeds"), [("0..2", (0, 1, 2)), ("1,5,9", (1, 5, 9)), ("[4]", (4,)), (" 0..1 ", (0, 1)), ("2, 3", (2, 3))]
)
def test_seeds_of_the_command_line_win(plan: Make, text: str, seeds: tuple[int, ...]):
    assert plan("seeds: 0..4", seeds=text).seeds == seeds


def test_a_seed_in_the_base_is_the_one_seed(plan: Make):
    assert plan("base: {seed: 3}").seeds == (3,)
    assert plan_from({}, "train", ["seed=7", "train.lr=1"]).seeds == (7,)
    assert plan("base: {seed: 3}", "seed=4").seeds == (4,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "seeds: 5 could mean seed 5 or 5 seeds; write [5] or 0..4"),
        ("1", "seeds: 1 could mean seed 1 or 1 seeds; write [1] or 0..0"),
        ("-1", "seeds: every seed must be from 0 to 2147483647, got -1"),
        ("-1..3", "seeds: every seed must be from 0 to 2147483647, got -1"),
        ("[-1]", "seeds: every seed must be from 0 to 2147483647, got -1"),
        ("[2147483648]", "seeds: every seed must be from 0 to 2147483647, got 2147483648"),
        ("[1, 2, 1]", "seeds: seed 1 is listed twice"),
        ("4..1", "seeds: 4..1 counts down; write 1..4"),
        ("0..1000000000000", "seeds: at most 1000 seeds are allowed"),
        ("[]", "seeds: must have at least one seed, got []"),
        ("[a]", "seeds: must be a range such as 0..4 or a list such as [0, 1, 2], got [a]"),
        ("[true]", "seeds: must be a range such as 0..4 or a list such as [0, 1, 2], got [true]"),
        ("1.5", "seeds: must be a range such as 0..4 or a list such as [0, 1, 2], got 1.5"),
        ("0..x", 'seeds: must be a range such as 0..4 or a list such as [0, 1, 2], got "0..x"'),
        ("", "seeds: must be a range such as 0..4 or a list such as [0, 1, 2], got null"),
    ],
)
def test_what_seeds_cannot_be(fault: Fault, text: str, message: str):
    assert fault(f"question: x\nseeds: {text}") == f"g.yaml:2: {message}"
    assert fault("question: x", seeds=text) == f"--{message}"


@pytest.mark.parametrize(
    "text",
    [
        "grid: {seed: [0, 1]}",
        "zip: {seed: [0, 1]}",
        "runs: [{seed: 1}]",
        "changes: {a: {seed: 1}}",
        "select: {over: {seed: [1]}}",
    ],
)
def test_the_seed_is_no_axis(fault: Fault, text: str):
    assert fault(text).endswith("seed: the seed is not an axis; list the seeds under seeds, e.g. seeds: 0..4")


def test_seed_0_alone_on_the_command_line():
    """No seeds at all is nothing to ask for, so it can mean one thing alone."""
    assert seeds_from_text("0") == (0,)

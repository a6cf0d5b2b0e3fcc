"""Which axes matter: of points made by hand, where it is known."""

from dataclasses import replace

import pytest

from mclab.plan.space_trials import Trial
from mclab.sweep.importance import LEAST, importances
from tests.sweep.bench import TWELVE, a_space

GATE, INIT, LR = "model.mixer.gate", "model.mixer.init", "train.lr"


def trials(value):
    """The twelve points, with what `value` makes of gate, init and learning rate."""
    points = [
        {GATE: gate, INIT: init, LR: lr}
        for gate in ("context", "input")
        for init in ("restart", "checkpoint")
        for lr in (1e-3, 1e-2, 1e-1)
    ]
    return tuple(
        Trial(number, "done", point, (value(*point.values()),), run_ids=(f"r{number}",))
        for number, point in enumerate(points)
    )


@pytest.fixture
def space(tmp_path):
    return a_space(tmp_path, TWELVE + "sampler: grid\n")


def test_what_decides_alone_has_nearly_all_and_shares_add_up(space):
    found = importances(
        space, trials(lambda gate, init, lr: (gate == "context") + 1e-3 * lr + 1e-4 * (init == "restart"))
    )
    shares = found["valid.accuracy"]
    assert set(shares) == {GATE, INIT, LR}
    assert shares[GATE] == max(shares.values()) > 0.5
    assert sum(shares.values()) == pytest.approx(1)


def test_what_the_points_are_compared_with_is_how_they_were_drawn_not_the_sampler_of_today(space):
    """Most of the points restart: where chance drew them so, that is no finding."""
    every = trials(lambda gate, init, lr: lr)
    drawn = [trial for trial in every if trial.params[INIT] == "restart" or trial.number % 3]
    random, tpe = ([replace(trial, sampler=name) for trial in drawn] for name in ("random", "tpe"))
    assert importances(space, tuple(random)) != importances(space, tuple(tpe))
    for today in ("random", "tpe"):
        assert importances(replace(space, sampler=today), tuple(tpe)) == importances(space, tuple(tpe))
        assert importances(replace(space, sampler=today), tuple(random)) == importances(space, tuple(random))


def test_nothing_is_said_of_few_trials_and_of_trials_that_are_alike(space):
    assert importances(space, trials(lambda gate, init, lr: lr)[: LEAST - 1]) == {}
    assert importances(space, trials(lambda gate, init, lr: 0.5)) == {"valid.accuracy": {}}
    mostly = importances(space, trials(lambda gate, init, lr: 0.5 - (gate == "input" and init == "restart")))
    assert mostly == {"valid.accuracy": {}}

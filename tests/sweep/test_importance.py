"""Which axes matter: of points made by hand, where it is known."""

import math
from dataclasses import replace
from random import Random

import optuna
import pytest
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import create_trial

from mclab.plan.comparable import comparable
from mclab.plan.space_trials import Objective, Resampled, SpaceAxis, Trial, Trials, as_dict, from_dict
from mclab.sweep.importance import LEAST, weighed
from mclab.sweep.pruning import medians
from mclab.sweep.samplers import distribution

GATE = SpaceAxis("model.mixer.gate", "choice", ("context", "input", "none"))
INIT = SpaceAxis("model.mixer.init", "choice", ("restart", "checkpoint"))
LR = SpaceAxis("train.lr", "float", low=1e-3, high=1e-1, log=True)
ACCURACY = (Objective("valid.accuracy", "maximize"),)


def study(*trials, **more):
    return Trials("s", None, (GATE, INIT, LR), ACCURACY, (0,), len(trials), trials, **more)


def trials(value, gates=("context", "input")):
    """Twelve points, with what `value` makes of gate, init and learning rate."""
    points = [(gate, init, lr) for gate in gates for init in INIT.values for lr in (1e-3, 1e-2, 1e-1)]
    return tuple(
        Trial(
            number,
            "done",
            dict(zip((GATE.path, INIT.path, LR.path), point, strict=True)),
            (value(*point),),
            {"valid.accuracy": value(*point)},
            run_ids=(f"r{number}",),
        )
        for number, point in enumerate(points)
    )


def shares(found, sampler="random"):
    return weighed(study(*found), sampler, resamples=0).importances


def first(of):
    return max(of, key=of.get)


def of_the_survivors(done):
    """As mclab had it before: PED-ANOVA of the best tenth, at least five, of the trials that ran to their end."""
    made = optuna.create_study(direction="maximize")
    distributions = {axis.path: distribution(axis) for axis in (GATE, INIT, LR)}
    for trial in done:
        made.add_trial(create_trial(params=trial.params, distributions=distributions, value=trial.values[0]))
    evaluator = PedAnovaImportanceEvaluator(target_quantile=max(0.1, 5 / len(done)))
    return get_param_importances(made, evaluator=evaluator)


def pruned_search(count=40, steps=(100, 200, 300), seed=1):
    """A search in which the gate decides and is seen to from the first look on; behind the median a run is stopped."""
    random, made, looks = Random(seed), [], {}
    for number in range(count):
        gate, init, lr = random.choice(GATE.values), random.choice(INIT.values), 10 ** random.uniform(-3, -1)
        top = (0.8 if gate == "context" else 0.3) + 0.05 * math.log10(lr / LR.low) + 0.05 * random.random()
        curve = {step: top * step / steps[-1] for step in steps}
        bars = medians([looks[trial.number] for trial in made if trial.status == "done"])
        end = next((step for step in steps[:-1] if curve[step] < bars.get(step, 0.0)), None)
        looks[number] = {step: value for step, value in curve.items() if end is None or step <= end}
        params = {GATE.path: gate, INIT.path: init, LR.path: lr}
        values = None if end else (curve[steps[-1]],)
        made.append(Trial(number, "pruned" if end else "done", params, values, run_ids=(f"r{number}",), sampler="tpe"))
    return study(*made, looks=looks)


def test_what_decides_alone_has_nearly_all_and_shares_add_up():
    found = shares(trials(lambda gate, init, lr: (gate == "context") + 1e-3 * lr + 1e-4 * (init == "restart")))
    of = found["valid.accuracy"]
    assert set(of) == {GATE.path, INIT.path, LR.path}
    assert of[GATE.path] == max(of.values()) > 0.5
    assert sum(of.values()) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(5))
def test_an_axis_whose_bad_values_were_pruned_is_seen_to_decide(seed):
    """Of the trials that ran to their end nearly all have its good value: among them it hardly matters."""
    found = pruned_search(seed=seed)
    survivors = [trial for trial in found.trials if trial.status == "done"]
    assert len(survivors) <= 20
    assert first(of_the_survivors(survivors)) != GATE.path
    whole = weighed(found, "tpe", resamples=0)
    assert first(whole.importances["valid.accuracy"]) == GATE.path
    judged = comparable(whole)
    assert (judged.step, len(judged.trials), judged.left) == (100, 40, 0)
    assert judged.pruned == 40 - len(survivors)


def test_a_step_that_nearly_all_have_come_to_will_do():
    """One trial of twenty that was stopped before does not hold back the others."""
    done = [Trial(n, "done", {}, (n / 20,), run_ids=(f"r{n}",)) for n in range(19)]
    looks = {n: {100: 0.1, 200: n / 20} for n in range(19)} | {19: {100: 0.05}}
    found = study(*done, Trial(19, "pruned", {}, run_ids=("r19",)), looks=looks)
    judged = comparable(found)
    assert (judged.step, len(judged.trials), judged.left) == (200, 19, 1)
    half = study(*done[:10], *(replace(t, status="pruned", values=None) for t in done[10:]), looks={
        n: {100: 0.1} | ({200: 0.2} if n < 10 else {}) for n in range(19)
    })  # fmt: skip
    assert (comparable(half).step, len(comparable(half).trials)) == (100, 19)
    unknown = replace(half, looks={})  # as stored before looks were
    assert (comparable(unknown).step, len(comparable(unknown).trials), comparable(unknown).left) == (None, 10, 9)


def test_what_the_points_are_compared_with_is_how_they_were_drawn_not_the_sampler_of_today():
    """Most of the points restart: where chance drew them so, that is no finding."""
    every = trials(lambda gate, init, lr: lr)
    drawn = [trial for trial in every if trial.params[INIT.path] == "restart" or trial.number % 3]
    random, tpe = ([replace(trial, sampler=name) for trial in drawn] for name in ("random", "tpe"))
    assert shares(random) != shares(tpe)
    for today in ("random", "tpe"):
        assert shares(tpe, today) == shares(tpe)
        assert shares(random, today) == shares(random)


def test_nothing_is_said_of_few_trials_and_of_trials_that_are_alike():
    assert shares(trials(lambda gate, init, lr: lr)[: LEAST - 1]) == {}
    assert shares(trials(lambda gate, init, lr: 0.5)) == {"valid.accuracy": {}}
    mostly = shares(trials(lambda gate, init, lr: 0.5 - (gate == "input" and init == "restart")))
    assert mostly == {"valid.accuracy": {}}


def test_nothing_is_said_of_trials_at_chance():
    """Twelve that answer as often as one who looks at no key: the best of them is the luckiest."""
    found = study(*trials(lambda gate, init, lr: 0.12 + lr / 10), without_recall=0.12)
    assert weighed(found, "random").importances == {}
    assert weighed(replace(found, without_recall=0.01), "random").importances["valid.accuracy"]


def test_an_interval_is_narrow_where_an_axis_decides_and_wide_where_chance_does():
    random = Random(0)
    points = trials(lambda gate, *_: (gate == "context") + 0.1 * random.random(), gates=GATE.values) * 3
    decided = study(*(replace(trial, number=n, run_ids=(f"r{n}",)) for n, trial in enumerate(points)))
    clear = weighed(decided, "random").resampled["valid.accuracy"][GATE.path]
    assert (clear.lo > 0.3, clear.first > 0.95) == (True, True)
    noise = weighed(study(*trials(lambda *_: random.random(), gates=GATE.values)), "random")
    doubts = noise.resampled["valid.accuracy"].values()
    assert max(each.first for each in doubts) < 0.8
    assert max(each.hi - each.lo for each in doubts) > 0.9
    assert sum(each.first for each in doubts) == pytest.approx(1)


def test_optunas_own_stands_beside_where_it_disagrees_alone():
    """Its best tenth of 40 are four trials, which lie close together on some axis by chance."""
    found = weighed(pruned_search(), "tpe", resamples=1)
    assert (first(found.importances["valid.accuracy"]), first(found.other["valid.accuracy"])) == (GATE.path, LR.path)
    decided = study(*trials(lambda gate, *_: float(gate == "context"), gates=GATE.values))
    assert weighed(decided, "random", resamples=1).other == {}


def test_what_is_known_of_trust_is_kept():
    found = weighed(pruned_search(), "tpe", resamples=5)
    assert isinstance(found.resampled["valid.accuracy"][LR.path], Resampled)
    assert from_dict(as_dict(found)) == found

"""Which axes matter: PED-ANOVA of the finished trials (arXiv 2304.10255; conditional axes: 2601.20800)."""

import warnings

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import create_trial

from mclab.config.strict import Scalar
from mclab.plan.space import Space
from mclab.plan.space_trials import Direction, Trial
from mclab.sweep.suggest import distribution

#: Samplers that draw from the space alone, whatever was found before.
UNMOVED = ("random", "qmc", "grid")
#: Distinct trials below which nothing is said, and the share of them that counts as good (at least five).
LEAST, GOOD, FEWEST_GOOD = 6, 0.1, 5


def importances(space: Space, trials: tuple[Trial, ...]) -> dict[str, dict[str, float]]:
    """Objective's metric -> axis -> share. Of trials that are done, each distinct one once.

    An axis that changes nothing at a point counts as absent there, as under a condition that does not hold. Good trials
    are compared with all others where a sampler drew any of them that moves towards what is good, else with the space
    itself: what chance draws too often of 24 points is no finding.
    """
    first: dict[tuple[str, ...], Trial] = {}
    for trial in trials:
        if trial.status == "done" and trial.values is not None:
            first.setdefault(trial.run_ids, trial)
    if len(first) < LEAST:
        return {}
    return {
        each.metric: _shares(space, tuple(first.values()), place, each.direction)
        for place, each in enumerate(space.objectives)
    }


def _shares(space: Space, trials: tuple[Trial, ...], place: int, direction: Direction) -> dict[str, float]:
    """Nothing where so many trials are as good as the best that the good ones are no choice among all."""
    quantile = min(0.5, max(GOOD, FEWEST_GOOD / len(trials)))
    values = [trial.values[place] for trial in trials if trial.values is not None]
    best = max(values) if direction == "maximize" else min(values)
    if values.count(best) > max(0.5, quantile) * len(values):
        return {}
    study = optuna.create_study(direction=direction)
    distributions = {axis.path: distribution(axis.told) for axis in space.axes}
    for trial in trials:
        params: dict[str, Scalar] = {path: v for path, v in trial.params.items() if path not in trial.inert}
        assert trial.values is not None
        study.add_trial(
            create_trial(
                params=params,
                distributions={path: distributions[path] for path in params},
                value=trial.values[place],
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moved = any((trial.sampler or space.sampler) not in UNMOVED for trial in trials)
        evaluator = PedAnovaImportanceEvaluator(target_quantile=quantile, evaluate_on_local=moved)
        found = get_param_importances(study, evaluator=evaluator)
    return {axis.path: float(found.get(axis.path, 0.0)) for axis in space.axes}

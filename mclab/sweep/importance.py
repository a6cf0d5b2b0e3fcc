"""Estimate which axes matter: PED-ANOVA (arXiv 2304.10255; conditional axes: 2601.20800), with pruned trials too.

Two things differ from the paper; both were measured on simulated responses in which one axis decides (LOG.md). First,
the best third of the trials counts as good. The paper and Optuna take a tenth, which is too few to separate a choice
from chance. Second, the importance that shuffled values give is subtracted, since a few good trials are spread unevenly
along every axis by chance, most of all along a continuous one.

To show how far the importances can be trusted, they are also computed for bootstrap resamples of the trials (Efron
1979), and by Optuna's own estimator.
"""

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Any

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, create_trial

from mclab.config.strict import Scalar
from mclab.plan.comparable import FEWEST_GOOD, comparable, meaningless
from mclab.plan.space_trials import Direction, Resampled, Trial, Trials
from mclab.sweep.samplers import distribution

#: Samplers that draw from the space alone and take no account of earlier results.
UNMOVED = ("random", "qmc", "grid")
#: The smallest number of distinct trials for which importances are computed; the share of the trials that counts as
#: good (but at least `FEWEST_GOOD` trials).
LEAST, GOOD = 6, 1 / 3
#: The number of shuffles of the values, the number of resamples of the trials, and the share of the resamples that an
#: interval leaves out on each side.
SHUFFLES, RESAMPLES, TAIL = 30, 100, 0.025
#: Two estimators disagree if they rank different axes first, or if the importances of an axis differ by more than
#: this.
DISAGREE = 0.15

Shares = dict[str, float]


def weighed(found: Trials, sampler: str, resamples: int = RESAMPLES) -> Trials:
    """Return the study with its importances and their intervals; also Optuna's default estimate if it disagrees.

    The importances are based on the distinct trials that are done or pruned, at a step that nearly all of them have
    reached (`mclab.plan.comparable`). They stay empty if these trials are few, or nearly all of them are at chance. At
    a point where an axis changes nothing, it counts as absent, like an axis whose condition does not hold.

    If a trial was drawn by a sampler that moves towards good points, the good trials are compared with all trials.
    Otherwise they are compared with the space itself: it is no finding if chance draws a value too often among 24
    points. `sampler` is the sampler of trials that do not name one.
    """
    judged = comparable(found).trials
    if len(judged) < LEAST or meaningless(found):
        return found
    moved = any((trial.sampler or sampler) not in UNMOVED for trial in judged)
    importances, resampled, other = dict[str, Shares](), dict[str, dict[str, Resampled]](), dict[str, Shares]()
    for place, each in enumerate(found.objectives):
        scale = _Scale(found, judged, place, each.direction, moved)
        importances[each.metric] = shares = scale.shares()
        if shares and resamples:
            resampled[each.metric] = scale.resampled(resamples)
            second = scale.default()
            if _disagree(shares, second):
                other[each.metric] = second
    return replace(found, importances=importances, resampled=resampled, other=other, good=GOOD)


class _Scale:
    """Estimates the importances of the axes of a study for one objective."""

    def __init__(self, found: Trials, judged: Sequence[Trial], place: int, direction: Direction, moved: bool) -> None:
        distributions = {axis.path: distribution(axis) for axis in found.axes}
        self._paths = list(distributions)
        self._trials = [_frozen(trial, place, distributions) for trial in judged]
        self._values = [trial.values[place] for trial in judged if trial.values is not None]
        self._study = optuna.create_study(direction=direction)
        self._best = max if direction == "maximize" else min
        self._quantile = min(0.5, max(GOOD, FEWEST_GOOD / len(judged)))
        self._evaluator = PedAnovaImportanceEvaluator(target_quantile=self._quantile, evaluate_on_local=moved)

    def shares(self) -> Shares:
        """Return the share of each axis in the importance; the shares sum to 1.

        The result is empty if so many trials have the best value that the good trials are no selection, or if no axis
        separates good trials from others more than chance does.
        """
        if self._values.count(self._best(self._values)) > max(0.5, self._quantile) * len(self._values):
            return {}
        random, every = Random(0), range(len(self._values))
        shuffled = [self._divergence(every, random.sample(self._values, len(self._values))) for _ in range(SHUFFLES)]
        return _less(self._divergence(every, self._values), _means(shuffled))

    def resampled(self, resamples: int) -> dict[str, Resampled]:
        """Return for each axis an interval of its share over `resamples` resamples, and how often it came first.

        The interval holds the middle 95 %. The importance that the same resamples give with shuffled values is
        subtracted, since trials that are drawn twice are spread unevenly by themselves.
        """
        random, count = Random(0), len(self._values)
        drawn, shuffled = list[Shares](), list[Shares]()
        for _ in range(resamples):
            places = random.choices(range(count), k=count)
            drawn.append(self._divergence(places, self._values))
            shuffled.append(self._divergence(places, random.sample(self._values, count)))
        off = _means(shuffled)
        found = [shares for each in drawn if (shares := _less(each, off))]
        firsts = [max(shares, key=lambda path: shares[path]) for shares in found]
        return {path: _middle([shares[path] for shares in found], firsts.count(path)) for path in self._paths if found}

    def default(self) -> Shares:
        """Return the shares as Optuna and its dashboard compute them: the best tenth, however few, against all."""
        found = self._by(PedAnovaImportanceEvaluator(), self._trials)
        return _less(found, dict.fromkeys(found, 0.0))

    def _divergence(self, places: Sequence[int], values: Sequence[float]) -> Shares:
        """Return for each axis how differently good trials and other trials are spread along it.

        Only the trials at the indices `places` are used; the trial at index `place` has the objective `values[place]`.
        """
        drawn = [copy.copy(self._trials[place]) for place in places]
        for number, (trial, place) in enumerate(zip(drawn, places, strict=True)):
            trial._trial_id, trial.value = number, values[place]
        return self._by(self._evaluator, drawn)

    def _by(self, evaluator: PedAnovaImportanceEvaluator, trials: Sequence[FrozenTrial]) -> Shares:
        # Optuna would copy and check each trial that is added to a study, which takes longer than all the rest.
        self._study.get_trials = lambda *args, **options: list(trials)  # type: ignore[method-assign]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = get_param_importances(self._study, evaluator=evaluator, normalize=False)
        return {path: float(found.get(path, 0.0)) for path in self._paths}


def _frozen(trial: Trial, place: int, distributions: Mapping[str, Any]) -> FrozenTrial:
    params: dict[str, Scalar] = {path: value for path, value in trial.params.items() if path not in trial.inert}
    assert trial.values is not None
    made = create_trial(
        params=params, distributions={path: distributions[path] for path in params}, value=trial.values[place]
    )
    made._trial_id = trial.number
    return made


def _means(found: Sequence[Shares]) -> Shares:
    return {path: fmean(each[path] for each in found) for path in found[0]}


def _less(found: Shares, off: Shares) -> Shares:
    """Return `found` minus `off`, at least 0, scaled to a sum of 1; empty if nothing is left."""
    left = {path: max(0.0, value - off[path]) for path, value in found.items()}
    whole = sum(left.values())
    return {path: value / whole for path, value in left.items()} if whole > 0 else {}


def _middle(shares: list[float], first: int) -> Resampled:
    ordered, out = sorted(shares), int(TAIL * len(shares))
    return Resampled(ordered[out], ordered[-1 - out], first / len(shares))


def _disagree(one: Shares, other: Shares) -> bool:
    if not other:
        return False
    first = max(one, key=lambda path: one[path])
    return other[first] < max(other.values()) or any(abs(one[path] - other[path]) > DISAGREE for path in one)

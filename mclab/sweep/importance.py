"""Which axes matter: PED-ANOVA (arXiv 2304.10255; conditional axes: 2601.20800) of all trials, pruned ones too.

Two changes, both measured on simulated responses in which one axis decides (LOG.md): the best third of the trials is
called good, where the paper and Optuna take a tenth, which is too few to tell a choice from chance; and what shuffled
values give is taken off, since few good trials are spread unevenly along every axis, most so on a continuous one.

How far that can be trusted: the same for bootstrap resamples of the trials (Efron 1979), and by Optuna's own estimator.
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

#: Samplers that draw from the space alone, whatever was found before.
UNMOVED = ("random", "qmc", "grid")
#: Distinct trials below which nothing is said, and the share of them that counts as good (at least `FEWEST_GOOD`).
LEAST, GOOD = 6, 1 / 3
#: Shuffles of the values, resamples of the trials, and the share of these that an interval leaves out on either side.
SHUFFLES, RESAMPLES, TAIL = 30, 100, 0.025
#: Two estimators disagree where they put another axis first, or where a share differs by more than this.
DISAGREE = 0.15

Shares = dict[str, float]


def weighed(found: Trials, sampler: str, resamples: int = RESAMPLES) -> Trials:
    """The study with its importances, their intervals and, where Optuna's default disagrees, what that one says.

    Of trials that are done or pruned, each distinct one once, at a step that nearly all have come to
    (`mclab.plan.comparable`). Nothing where they are few, and where nearly all of them are at chance. An axis that
    changes nothing at a point counts as absent there, as under a condition that does not hold. Good trials are compared
    with all others where a sampler drew any of them that moves towards what is good, else with the space itself: what
    chance draws too often of 24 points is no finding. `sampler` drew the trials that do not name theirs.
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
    """Weighs the axes of a study for one objective."""

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
        """Empty where so many trials are as good as the best that the good ones are no choice among all, and where no
        axis parts the good ones from the others more than chance does."""
        if self._values.count(self._best(self._values)) > max(0.5, self._quantile) * len(self._values):
            return {}
        random, every = Random(0), range(len(self._values))
        shuffled = [self._divergence(every, random.sample(self._values, len(self._values))) for _ in range(SHUFFLES)]
        return _less(self._divergence(every, self._values), _means(shuffled))

    def resampled(self, resamples: int) -> dict[str, Resampled]:
        """The middle of each axis's share over resamples of the trials, and how often it came first.

        What is taken off is what the same resamples give of shuffled values: trials that are drawn twice are uneven by
        themselves.
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
        """As Optuna and its dashboard have it: the best tenth, however few they are, among all trials."""
        found = self._by(PedAnovaImportanceEvaluator(), self._trials)
        return _less(found, dict.fromkeys(found, 0.0))

    def _divergence(self, places: Sequence[int], values: Sequence[float]) -> Shares:
        """How differently good and other trials are spread along each axis, of those at `places` with these values."""
        drawn = [copy.copy(self._trials[place]) for place in places]
        for number, (trial, place) in enumerate(zip(drawn, places, strict=True)):
            trial._trial_id, trial.value = number, values[place]
        return self._by(self._evaluator, drawn)

    def _by(self, evaluator: PedAnovaImportanceEvaluator, trials: Sequence[FrozenTrial]) -> Shares:
        # Adding trials to a study copies and checks each one, which takes longer than the rest.
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
    """Shares of 1 of what is left; empty where nothing is."""
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

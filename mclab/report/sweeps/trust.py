"""Say on which trials importances, marginals and contour of a study are based, and how far they can be trusted."""

from collections.abc import Iterator

from mclab.plan.comparable import MOST, begun, meaningless
from mclab.plan.space_trials import SpaceAxis, Trial
from mclab.report.sweeps.levels import BINS
from mclab.report.sweeps.study import Study, metric_name
from mclab.report.text import listed

#: The number of good trials that there should be on average for each value of the axis with the most values.
PER_VALUE = 3
#: An axis is said to matter most if it comes first in at least this fraction of the resamples.
CLEAR = 0.95
#: A trial was still improving if its accuracy rose by more than `GAIN` in the last fraction `LAST` of the steps.
LAST, GAIN = 0.2, 0.02
#: The number of best trials that are checked for whether they were still improving.
LOOKED_AT = 10
LR, STEPS = "train.lr", "train.steps"


def trust(study: Study) -> list[str]:
    """Return sentences on which trials are compared, how far importances can be trusted, and what is missing."""
    return [
        *_rests_on(study),
        *_at_chance(study),
        *_improving(study),
        *_too_few_trials(study),
        *_first(study),
        *_differs(study),
    ]


def _rests_on(study: Study) -> Iterator[str]:
    judged = study.judged
    if judged.step is None:
        if judged.left:
            yield (
                f"{_trials(judged.left)} pruned and left out of importances and means, because their "
                "evaluations are not "
                f"stored."
            )
        return
    left = f"; {_trials(judged.left)} stopped before and left out" if judged.left else ""
    yield (
        f"Importances, marginals and contour are of {len(judged.trials)} distinct trials at step {judged.step}, the "
        f"last that at least {MOST:.0%} of them have come to: {judged.pruned} of them were pruned there or later{left}."
    )


def _trials(number: int) -> str:
    return f"{number} trial{'s were' if number != 1 else ' was'}"


def _at_chance(study: Study) -> Iterator[str]:
    """Yield advice if many trials are not above the best predictor without recall."""
    found, known = study.found, begun(study.found)
    if known is None or not known[1]:
        return
    above, count = known
    at = "" if study.judged.step is None else f" at step {study.judged.step}"
    score = f"{found.without_recall:.3f}, what the best predictor without recall scores"
    if meaningless(found):
        yield (
            f"Importances mean nothing yet: {above} of {count} trials are clearly above {score}{at}, and chance sorts "
            f"the others. First {_learn(study)}; then more trials."
        )
    elif 2 * above < count:
        yield f"{above} of {count} trials are clearly above {score}{at}: the others have not begun to recall."


def _learn(study: Study) -> str:
    """Return the advice to take more steps or another learning rate, as options or as lines of the space."""
    axes = {axis.path for axis in study.found.axes}
    last = max((step for looks in study.found.looks.values() for step in looks), default=None)
    if STEPS in axes:
        steps = f"larger values of {STEPS}"
    else:
        steps = f"more steps ({STEPS}={2 * last})" if last else f"more steps ({STEPS}=...)"
    rate = f"another range of {LR}" if LR in axes else f"a range of {LR} in the space"
    return f"{steps} or {rate}, in a study of its own (--study {study.found.study}-2)"


def _improving(study: Study) -> Iterator[str]:
    """Yield a sentence if most of the best trials were still improving when training ended."""
    found = study.found
    if study.several or found.objectives[0].metric != "valid.accuracy":
        return
    gains = [gain for trial in found.best()[:LOOKED_AT] if (gain := _gain(study, trial)) is not None]
    rose = sum(gain > GAIN for gain in gains)
    if 2 * rose > len(gains):
        yield (
            f"Still improving when training ended: in {rose} of the {len(gains)} best trials valid accuracy rose by "
            f"more than {GAIN} over the last {LAST:.0%} of the steps. With more steps the order may be another."
        )


def _gain(study: Study, trial: Trial) -> float | None:
    looks = study.found.looks.get(trial.number, {})
    end = max(looks, default=0)
    before = [step for step in looks if step <= (1 - LAST) * end]
    return looks[end] - looks[max(before)] if before else None


def _too_few_trials(study: Study) -> Iterator[str]:
    if not study.weighed or study.found.good is None:
        return
    widest = max(study.found.axes, key=_values)
    needed, count = round(PER_VALUE * _values(widest) / study.found.good), len(study.judged.trials)
    if count < needed:
        parts = "values" if widest.kind == "choice" else "parts"
        yield (
            f"Importances rest on {count} trials, fewer than they can bear: with {needed} the good third would hold "
            f"about {PER_VALUE} for each of the {_values(widest)} {parts} of {study.names[widest.path]} "
            f"(--trials {study.found.asked + needed - count})."
        )


def _values(axis: SpaceAxis) -> int:
    return len(axis.values) if axis.kind == "choice" else BINS


def _first(study: Study) -> Iterator[str]:
    """Yield a sentence on which axis matters most; it says that this is open if the resamples disagree."""
    for place, objective in enumerate(study.found.objectives):
        known = [(each.doubt[place], each.name) for each in study.ranked]
        often = sorted(((doubt.first, name) for doubt, name in known if doubt is not None), reverse=True)
        if not often or len(study.found.axes) < 2:
            continue
        what = f" for {metric_name(objective.metric)}" if study.several else ""
        (share, name), rest = often[0], [f"{name} in {share:.0%}" for share, name in often if share >= 1 - CLEAR]
        if share >= CLEAR:
            yield f"{name} matters most{what}: it comes first in {share:.0%} of the resamples."
        else:
            yield f"It is not known which axis matters most{what}: {listed(rest)} of the resamples come first."


def _differs(study: Study) -> Iterator[str]:
    for metric, other in study.found.other.items():
        what = f" for {metric_name(metric)}" if study.several else ""
        name = study.names[max(other, key=lambda path: other[path])]
        yield f"Optuna's default estimator differs{what} and puts {name} first: the best tenth of the trials among all."

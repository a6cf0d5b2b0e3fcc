"""Decide how a trial ended, from the records of its runs."""

from collections.abc import Callable, Mapping, Sequence
from math import fsum, isfinite
from typing import Any

from mclab.config.outcome import ALL
from mclab.config.stored import StoredRun
from mclab.plan.comparable import recalls
from mclab.plan.space_trials import Objective, Status, Trial
from mclab.sweep.pruning import evaluations
from mclab.sweep.study import End
from mclab.sweep.trials import BEGUN, WITHOUT

#: The costs of a run; they are known whatever its status.
_COSTS = ("state_floats", "params", "tokens_per_s")
#: Statuses other than `done`, the worst first. A trial has the first of these that one of its runs has.
_WORST: tuple[Status, ...] = ("failed", "oom", "diverged", "pruned")


def metrics(records: Sequence[StoredRun]) -> dict[str, float]:
    """Return the trial's metrics as means over seeds. A metric that is not finite for every seed is left out."""
    found = [dict(_figures(record)) for record in records]
    names = [name for name in found[0] if all(name in each for each in found)]
    return {name: fsum(each[name] for each in found) / len(found) for name in names}


def _figures(record: StoredRun) -> dict[str, float]:
    valid, test = record.valid[ALL], record.test[ALL]
    scores = {
        "valid.accuracy": valid.accuracy,
        "valid.loss": valid.loss,
        "test.accuracy": test.accuracy,
        "test.loss": test.loss,
    }
    known = {name: float(value) for name, value in scores.items() if value is not None and isfinite(value)}
    return {**known, **_costs(record)}


def _costs(record: StoredRun) -> dict[str, float]:
    fixed, cached = record.state_fixed, record.state_cached
    state = fixed + cached if fixed is not None and cached is not None else None
    found = zip(_COSTS, (state, record.params, record.tokens_per_s), strict=True)
    return {name: float(value) for name, value in found if value is not None and isfinite(value)}


def end_of(
    records: Sequence[StoredRun], curve: Callable[[str], Sequence[Mapping[str, Any]]], objectives: Sequence[Objective]
) -> End:
    """Return how a trial with these records ended: its status, and the facts that are written as its attributes.

    The facts hold the metrics twice, as one mapping and each under its name, because Optuna's dashboard plots only
    attributes that are numbers.
    """
    statuses = {record.status for record in records}
    ended: Status = next((word for word in _WORST if word in statuses), "done")
    metric = objectives[0].metric
    curves = [curve(record.run_id) for record in records]
    seen, chance = evaluations(curves, metric), _without_recall(records)
    told = {WITHOUT: chance, BEGUN: _begun(curves, chance)}
    if ended == "done":
        found = metrics(records)
        lacking = [each.metric for each in objectives if each.metric not in found]
        if lacking:
            return End("failed", looks=seen, facts={"error": f"the value of {lacking[0]} is not a number"})
        return End("done", tuple(found[each.metric] for each in objectives), seen, {"metrics": found, **found, **told})
    bad = next(record for record in records if record.status == ended)
    facts = {"diverged_step": bad.diverged_step, "error": bad.error}
    return End(ended, looks=seen, facts={**facts, **_so_far(records, curves), **told})


def _so_far(records: Sequence[StoredRun], curves: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    """Return what is known about runs that are not done: means of their last evaluation on valid and of their costs."""
    costs = [dict(_costs(record)) for record in records]
    known = {name: [each[name] for each in costs if name in each] for name in _COSTS}
    found = {name: fsum(values) / len(values) for name, values in known.items() if values}
    for metric in ("valid.accuracy", "valid.loss"):
        seen = evaluations(curves, metric)
        if seen and isfinite(value := seen[max(seen)]):
            found[metric] = value
    return found


def _without_recall(records: Sequence[StoredRun]) -> float | None:
    """Return the score of the best predictor without recall, mean over the seeds; `None` if a record lacks it."""
    best = [max((record.without_recall or {}).get(ALL, {}).values(), default=None) for record in records]
    known = [value for value in best if value is not None]
    return fsum(known) / len(known) if known and len(known) == len(best) else None


def _begun(curves: Sequence[Sequence[Mapping[str, Any]]], chance: float | None) -> int | None:
    """Return the first step at which the mean accuracy shows more recall than `chance`; `None` if there is none."""
    if chance is None:
        return None
    accuracies = evaluations(curves, "valid.accuracy")
    return min((step for step, value in accuracies.items() if recalls(value, chance)), default=None)


def same_end_as(trial: Trial) -> End:
    """Return the end of a trial whose runs are those of the earlier `trial`."""
    own = {"metrics": trial.metrics or None, "diverged_step": trial.diverged_step, "repeat_of": trial.number}
    return End(trial.status, trial.values, facts={**own, **trial.metrics})

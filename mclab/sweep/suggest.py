"""A point of the space from Optuna, axis by axis: those under a condition only where it holds."""

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from mclab.config.strict import Scalar
from mclab.plan.space import Space
from mclab.plan.space_axes import Axis
from mclab.plan.space_trials import SpaceAxis


def suggest(trial: optuna.Trial, space: Space) -> dict[str, Scalar]:
    """The trial's value on every axis that exists there."""
    params: dict[str, Scalar] = {}
    for axis in space.axes:
        if space.asked(axis, params):
            params[axis.path] = _value(trial, axis)
    return params


def _value(trial: optuna.Trial, axis: Axis) -> Scalar:
    told = axis.spec
    if told.kind == "choice":
        value: Scalar = trial.suggest_categorical(axis.path, told.values)
        return value
    assert told.low is not None
    assert told.high is not None
    if told.kind == "int":
        step = int(told.step or 1)
        return trial.suggest_int(axis.path, int(told.low), int(told.high), step=step, log=told.log)
    return trial.suggest_float(axis.path, told.low, told.high, step=told.step, log=told.log)


def distribution(told: SpaceAxis) -> BaseDistribution:
    """What Optuna takes the axis for."""
    if told.kind == "choice":
        return CategoricalDistribution(told.values)
    assert told.low is not None
    assert told.high is not None
    if told.kind == "int":
        return IntDistribution(int(told.low), int(told.high), log=told.log, step=int(told.step or 1))
    return FloatDistribution(told.low, told.high, log=told.log, step=told.step)

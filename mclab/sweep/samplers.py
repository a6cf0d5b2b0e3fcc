"""Samplers by name, and what they are asked for: a point of the space, axis by axis.

What a sampler lacks is said before the first trial; Optuna notices when it first needs it.
"""

import hashlib
import warnings
from importlib.util import find_spec

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, QMCSampler, RandomSampler, TPESampler

from mclab.config.strict import ConfigError, Scalar
from mclab.plan.space import Space
from mclab.plan.space_axes import Axis
from mclab.plan.space_trials import SpaceAxis

#: Packages that a sampler imports when it first needs them, and how pip calls them.
NEEDS = {"gp": {"torch": "torch", "scipy": "scipy"}, "qmc": {"scipy": "scipy"}, "cmaes": {"cmaes": "mclab[cmaes]"}}


def check(name: str) -> None:
    """Raise `ConfigError` where a package that the sampler needs is missing."""
    for package, wanted in NEEDS.get(name, {}).items():
        if find_spec(package) is None:
            raise ConfigError(
                f"sampler: {name} needs the package {package}: pip install '{wanted}', or take another sampler"
            )


def sampler(name: str, seed: int, number: int) -> BaseSampler:
    """The sampler for the trial of this number.

    It is made anew for every trial and seeded by the trial's number, so that whichever process asks, and however often
    a search was stopped, no two trials of a study draw alike. Quasi-random numbers keep their place in the study and
    need one seed; what they do not cover is drawn at random. A grid's points are given, nothing is drawn.
    """
    mixed = _mixed(seed, number)
    if name == "tpe":
        return TPESampler(seed=mixed)
    if name == "gp":
        return GPSampler(seed=mixed, warn_independent_sampling=False)
    if name == "cmaes":
        return CmaEsSampler(seed=mixed, warn_independent_sampling=False)
    if name == "qmc":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is experimental
            return QMCSampler(
                scramble=True, seed=seed, independent_sampler=RandomSampler(seed=mixed), warn_independent_sampling=False
            )
    return RandomSampler(seed=mixed)


def _mixed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:4])


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

"""Create samplers by name, and draw a point of the space from one, axis by axis.

A package that a sampler lacks is reported before the first trial; Optuna would notice it only at the first use.
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

#: Packages that a sampler imports when it first needs them, each with the name under which pip installs it.
NEEDS = {"gp": {"torch": "torch", "scipy": "scipy"}, "qmc": {"scipy": "scipy"}, "cmaes": {"cmaes": "mclab[cmaes]"}}


def check(name: str) -> None:
    """Raise `ConfigError` if a package that the sampler needs is missing."""
    for package, wanted in NEEDS.get(name, {}).items():
        if find_spec(package) is None:
            raise ConfigError(
                f"sampler: {name} needs the package {package}: pip install '{wanted}', or choose another sampler"
            )


def sampler(name: str, seed: int, number: int) -> BaseSampler:
    """Return the sampler for the trial with this number.

    Every trial gets a new sampler, seeded by its number. So all trials of a study draw differently, whichever process
    draws and however often the search was stopped. A quasi-random sequence continues through the whole study, so it has
    one seed; what it does not cover is drawn at random. A grid gives its points, so nothing is drawn.
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
            warnings.simplefilter("ignore")  # QMCSampler is experimental
            return QMCSampler(
                scramble=True, seed=seed, independent_sampler=RandomSampler(seed=mixed), warn_independent_sampling=False
            )
    return RandomSampler(seed=mixed)


def _mixed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number}".encode()).digest()[:4])


def suggest(trial: optuna.Trial, space: Space) -> dict[str, Scalar]:
    """Draw the trial's value on every axis whose conditions hold at the values drawn so far."""
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
    """Return Optuna's distribution for the axis."""
    if told.kind == "choice":
        return CategoricalDistribution(told.values)
    assert told.low is not None
    assert told.high is not None
    if told.kind == "int":
        return IntDistribution(int(told.low), int(told.high), log=told.log, step=int(told.step or 1))
    return FloatDistribution(told.low, told.high, log=told.log, step=told.step)

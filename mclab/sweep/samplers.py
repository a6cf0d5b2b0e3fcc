"""Samplers by name. What they lack is said before the first trial; Optuna notices when it first needs it."""

import hashlib
import warnings
from importlib.util import find_spec

from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, QMCSampler, RandomSampler, TPESampler

from mclab.config.strict import ConfigError

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

"""Trials that end the process that trains them: counted in the study, along the trials that take them over.

The same rule as in a run folder (`mclab.store.flight`), but for what a process of its own trains a trial may be taken
over by another one, on another machine, and the study is all that both see.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from optuna.trial import FrozenTrial

from mclab.store.flight import DEATHS, Death, reason
from mclab.sweep.owner import Owner

#: Attributes of a trial: the share of its steps at which its owner's own process trains it, and what came before it.
TRAINING, BEFORE = "training", "deaths"


def before(trial: FrozenTrial) -> Death:
    """The deaths of the owners of the trials whose parameters this one took over."""
    told = trial.user_attrs.get(BEFORE)
    return Death(**told) if told else Death()


def now(trial: FrozenTrial, owner: Owner | None, me: Owner) -> Death:
    """Those, and its own owner's, where that counts: it trained the trial, and its machine has not started again."""
    share = trial.user_attrs.get(TRAINING)
    if share is None or (owner is not None and owner.restarted(me)):
        return before(trial)
    return before(trial).again(float(share), 0)


def attrs(death: Death) -> Mapping[str, Any]:
    """What the trial is told that takes another one over."""
    return {BEFORE: asdict(death)} if death.times else {}


def error(death: Death) -> str | None:
    """Why nobody takes it over; `None` while somebody does."""
    return reason(death.times, death.share) if death.times >= DEATHS else None

"""Open a study by its name, or create it."""

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import optuna

from mclab.config.strict import ConfigError
from mclab.plan.space import Space, changes, completed
from mclab.sweep.storage import Retrying, Say, StudyStorage
from mclab.sweep.study import Shared
from mclab.sweep.trials import SPACE


def open_study(name: str, space: Space, place: StudyStorage, asked: int, seed: int, say: Say) -> Shared:
    """Return the study called `name`. If there is none, create it with the base of the space as its first trial.

    Several processes may do this at once. Raises `ConfigError` if the study was not made by mclab, or if it searches
    another space; the message then names the differences.
    """
    patiently = Retrying(place, say)
    study = patiently(lambda: _opened(name, space, place))
    return Shared(study, space, place, asked, seed, say, patiently)


def _opened(name: str, space: Space, place: StudyStorage) -> optuna.Study:
    told = json.loads(json.dumps(space.describe()))
    with place.guard("studies"):
        storage = place.open()
        names = [each.study_name for each in storage.get_all_studies()]
        directions = [each.direction for each in space.objectives]
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            directions=directions,
            load_if_exists=True,
            pruner=optuna.pruners.NopPruner(),
        )
        before, trials = study.user_attrs.get(SPACE), study.get_trials(deepcopy=False)
        if before is None and (
            trials or study.user_attrs or [each.name.lower() for each in study.directions] != directions
        ):
            raise ConfigError(f"{place.where}: study {name} was not made by mclab; give another name with --study")
        if before is None:
            _name(study, space, told)
        elif (then := completed(before, told)) != told:
            raise ConfigError(_changed(name, place, changes(then, told), names))
        if not trials and space.sampler != "grid":
            study.enqueue_trial(dict(space.start))
        return study


def _name(study: optuna.Study, space: Space, told: Mapping[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of objectives are experimental
        study.set_metric_names([each.metric for each in space.objectives])
    study.set_user_attr(SPACE, told)


def _changed(name: str, place: StudyStorage, lines: Sequence[str], names: Sequence[str]) -> str:
    number = 2
    while f"{name}-{number}" in names:
        number += 1
    more = f"; and {len(lines) - 4} more" if len(lines) > 4 else ""
    return (
        f"{place.where}: study {name} searches a different space: {'; '.join(lines[:4])}{more}; "
        f"undo these changes, or begin a new study with --study {name}-{number}"
    )

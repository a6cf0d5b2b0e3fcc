"""Load a search space from its file: base, overrides, conditions, axes, objectives."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mclab.config.error import did_you_mean
from mclab.config.parse import check_values, quoted
from mclab.config.strict import ConfigError
from mclab.plan.cells import Ground, Remarks, cells
from mclab.plan.conditions import When, exclude, when
from mclab.plan.dotted import base_of, check_top, nested, overlaid, question_of
from mclab.plan.loader import load, read
from mclab.plan.overrides import parse_overrides, refuse_varied
from mclab.plan.rows import Draft, Rows
from mclab.plan.source import Source, name_of
from mclab.plan.space import METRICS, Space
from mclab.plan.space_axes import axes_of, start_of
from mclab.plan.space_trials import Objective

#: The keys at the top of a space.
KEYS = ("question", "base", "space", "when", "exclude", "objective", "sampler", "pruner", "repeats")
_CHOSEN_BY = ("valid.accuracy", "valid.loss")
SAMPLERS = ("tpe", "random", "gp", "cmaes", "qmc", "grid")
PRUNERS = ("none", "median")
MOST_REPEATS = 100


def load_space(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    repeats: int | None = None,
    seed: int | None = None,
    sampler: str | None = None,
    pruner: str | None = None,
    content: bytes | None = None,
) -> Space:
    """Return the search space in a YAML file. `overrides` change its base; the options replace values in the file.

    A trial has `repeats` seeds, from `seed` on. Raises `ConfigError` with file, line, key and a suggestion.
    """
    data, source = _data(path, content)
    given, own = parse_overrides(overrides)
    if own is not None and seed is not None:
        raise ConfigError(f"seed={own}: seed: both this override and --seed are given; keep one")
    base, first = base_of(data.get("base"), source)
    first = next((each for each in (seed, own, first) if each is not None), 0)
    count = _repeats(data.get("repeats", 1), source) if repeats is None else repeats
    found = Space(
        name=name_of(path),
        question=question_of(data.get("question"), source),
        axes=(),
        objectives=_objectives(data.get("objective", "valid.accuracy"), source),
        sampler=_word(sampler, data.get("sampler", "tpe"), "sampler", SAMPLERS, source),
        pruner=_word(pruner, data.get("pruner", "none"), "pruner", PRUNERS, source),
        start={},
        ground=Ground(overlaid(base, given), given, When({}), (), ((),), tuple(range(first, first + count)), source),
    )
    return _checked(_searched(found, data))


def _data(path: str | Path, content: bytes | None) -> tuple[Mapping[str, Any], Source]:
    """Return the data of the file, whose top-level keys are checked, and its source."""
    data, source = load(read(path) if content is None else content, str(path))
    if not isinstance(data, Mapping):
        what = "the file is empty" if data is None else f"the file must be a mapping, got {quoted(data)}"
        raise ConfigError(f"{path}: {what}; the keys of a space are {', '.join(KEYS)}")
    _check_top(data, source)
    return data, source


def _searched(space: Space, data: Mapping[str, Any]) -> Space:
    """Return the space with its conditions, its axes, and the base as a point."""
    ground, source, notes = space.ground, space.ground.source, list[str]()
    conditions = when(data.get("when"), source)
    axes = axes_of(data.get("space"), source, conditions, notes)
    refuse_varied(ground.given, [axis.example() for axis in axes], ())
    start, strange = start_of(axes, ground.base, conditions)
    notes += [
        f"trial 0 is the base except for {path}, because this axis does not contain the base's value"
        for path in strange
    ]
    return replace(
        space,
        axes=axes,
        start=start,
        ground=replace(ground, when=conditions, exclude=exclude(data.get("exclude"), source, ())),
        notes=tuple(notes),
        warnings=tuple(conditions.idle([axis.path for axis in axes])),
    )


def _checked(space: Space) -> Space:
    """Return the space with its warnings.

    Raises `ConfigError` for options that exclude each other, a value that no run accepts, and a base that is no valid
    run.
    """
    if len(space.objectives) > 1 and space.pruner != "none":
        raise ConfigError(f"pruner: {space.pruner} can judge only one objective, but there are two; take none")
    if space.pruner == "median" and len(space.seeds) > 1:
        raise ConfigError(
            f"pruner: median can judge only one run, but a trial has {len(space.seeds)} seeds; take none, or repeats 1"
        )
    if len(space.objectives) > 1 and space.sampler == "cmaes":
        raise ConfigError(
            "sampler: cmaes can search for only one objective, but there are two; take tpe, gp, random or qmc"
        )
    for axis in space.axes:
        for item in axis.settings.values():
            check_values(nested(overlaid(space.ground.base, (item,)), item.where), item.where)
    remarks = Remarks()
    cells(Rows((), (Draft(()),)), replace(space.ground, exclude=()), remarks)  # the base alone
    if space.sampler == "grid":
        space.listed()
    run = space.base_point().runs[0]
    if space.pruner != "none" and run.eval.every >= run.train.steps:
        line = (
            f"pruner: nothing is pruned, because the first evaluation on valid is at step {run.eval.every} "
            "(eval.every) of train.steps"
        )
        remarks.warnings[f"{line} {run.train.steps}"] = None
    return replace(space, warnings=(*space.warnings, *remarks.warnings, *space.doubts()))


def _check_top(data: Mapping[str, Any], source: Source) -> None:
    of_a_grid = "it is for mclab ablate --grid; a search has the key space"
    hints = dict.fromkeys(("grid", "zip", "runs", "changes", "select"), of_a_grid)
    hints["seeds"] = "write repeats: N, and seed under base"
    check_top(data, KEYS, "a space", "it belongs under base, or under space to be searched", hints, source)


def _repeats(value: Any, source: Source) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_REPEATS:
        raise source.error(
            "repeats", f"repeats: must be a number of seeds from 1 to {MOST_REPEATS}, got {quoted(value)}"
        )
    return value


def _objectives(value: Any, source: Source) -> tuple[Objective, ...]:
    given = value if isinstance(value, list) else [value]
    if not 1 <= len(given) <= 2:
        raise source.error("objective", f"objective: must be one metric or two, got {quoted(value)}")
    for word in given:
        _metric(word, source)
    if given[0] not in _CHOSEN_BY:
        raise source.error(
            "objective", f"objective: the first metric must be {' or '.join(_CHOSEN_BY)}, got {given[0]}"
        )
    if given[1:] and given[1] in _CHOSEN_BY:
        rest = ", ".join(metric for metric in METRICS if metric not in _CHOSEN_BY)
        raise source.error("objective", f"objective: the second metric must be a cost ({rest}), got {given[1]}")
    return tuple(Objective(word, METRICS[word]) for word in given)


def _metric(word: Any, source: Source) -> None:
    if isinstance(word, str) and word in METRICS:
        return
    hint = did_you_mean(str(word), METRICS, "; ")
    if str(word).startswith("test"):
        hint = "; test is for the table, so choose on valid"
    raise source.error("objective", f"objective: must be one of {', '.join(METRICS)}, got {quoted(word)}{hint}")


def _word(option: str | None, own: Any, key: str, known: Sequence[str], source: Source) -> str:
    """Return the value of the option, else that of the file. Raises `ConfigError` if it is not in `known`."""
    word = own if option is None else option
    if isinstance(word, str) and word in known:
        return word
    text = f"{key}: must be one of {', '.join(known)}, got {quoted(word)}{did_you_mean(str(word), known, '; ')}"
    raise ConfigError(f"--{text}") if option is not None else source.error(key, text)

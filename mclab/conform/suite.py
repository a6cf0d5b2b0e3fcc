"""The suite of a part by its word or path: one result for each property that parts of its kind have."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mclab.caching.aggregate import AGGREGATES
from mclab.caching.gate import GATES
from mclab.config.error import did_you_mean
from mclab.config.fields import is_path
from mclab.config.model import RULES, MemoryMixer
from mclab.config.own import KINDS, Part, check_part, parts_of, uses_weights
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.config.task import TASKS
from mclab.conform import layer as of_layer
from mclab.conform import task as of_task
from mclab.conform.mixer import Say, check_module, lengths_of, silent
from mclab.own.found import found as imported
from mclab.own.found import told

#: The words of each kind, as they are registered.
WORDS: dict[str, Mapping[str, Any]] = {"memory": RULES, "gate": GATES, "aggregate": AGGREGATES, "task": TASKS}


@dataclass(frozen=True)
class Property:
    """A property, and what is wrong where it does not hold; empty where it does."""

    name: str
    fault: str = ""


def suite(axis: str, word: str, args: Mapping[str, Any] | None = None) -> Iterator[Property]:
    """Every property of a part, in order: of the user's own by its path, of ours by its word.

    `axis` is a key of `KINDS`. Raises `ConfigError` for a part that is not found or cannot be made.
    """
    yield from _properties(axis, _run_of(axis, word, args or {}), trained=True)


def _run_of(axis: str, word: str, args: Mapping[str, Any]) -> RunConfig:
    if is_path(word):
        check_part(Part(axis, word, f"{word}, its arguments", word, dict(args)))
    if axis == "task":
        sizes = {key: value for key, value in args.items() if key in ("vocab", "length")}
        own = {key: value for key, value in args.items() if key not in sizes}
        named = {"name": "module", "module": word, "args": own} if is_path(word) else {"name": word, **own}
        return parse_run({"task": {**named, **sizes}})
    if axis == "mixer":
        return parse_run({"model": {"mixer": {"name": "module", "module": word, "args": dict(args)}}})
    mixer = {axis: word, **({f"{axis}_args": dict(args)} if is_path(word) else {})}
    if axis == "aggregate" and is_path(word) and not uses_weights(word):
        mixer["gate"] = "none"
    # What is chosen by score has a gradient of its own on other routes, which is no slope.
    return parse_run({"model": {"mixer": {"segment": 4, "chunk": 3, "k": 1, "route": "hard", **mixer}}})


def _properties(axis: str, run: RunConfig, trained: bool) -> Iterator[Property]:
    if axis == "mixer":
        try:
            check_module(run)
        except ConfigError as error:
            yield Property("mixer", str(error))
        else:
            yield Property("mixer")
        return
    mixer = run.model.mixer
    if axis == "task":
        for name, holds in of_task.PROPERTIES.items():
            if trained or name not in of_task.TRAINED:
                yield _asked(name, lambda holds=holds: holds(run.task))
        return
    assert isinstance(mixer, MemoryMixer)
    case = of_layer.Case(axis, mixer)
    for name, property_ in of_layer.PROPERTIES.items():
        if trained or name not in of_layer.TRAINED:
            yield _asked(name, lambda holds=property_: holds(case))


def _asked(name: str, holds: Any) -> Property:
    """What fails on the way does not hold."""
    try:
        return Property(name, holds())
    except ConfigError as error:
        return Property(name, str(error))
    except Exception as error:
        return Property(name, f"fails: {told(error)}")


def check(runs: Iterable[RunConfig], device: str = "cpu", say: Say = silent) -> None:
    """Check every distinct part of the user's own among `runs`, before it trains. Raises `ConfigError`, the part and
    the property that it fails."""
    known: dict[object, RunConfig] = {}
    for run in runs:
        known.setdefault((run.model.mixer, run.model.dim, lengths_of(run), run.train.precision, run.task), run)
    seen = set[object]()
    for run in known.values():
        if (key := (run.model.mixer, run.model.dim, lengths_of(run), run.train.precision)) not in seen:
            seen.add(key)
            check_module(run, device, say)
        for part in parts_of(run):
            if part.axis != "mixer" and (part.axis, part.path, str(part.keywords), run.task.length) not in seen:
                seen.add((part.axis, part.path, str(part.keywords), run.task.length))
                _check_part(part, run)


def _check_part(part: Part, run: RunConfig) -> None:
    """With the usual rule, gate and aggregation around it: what is wrong is then its own."""
    if part.axis != "task":
        run = _run_of(part.axis, part.path, part.keywords)
    for found in _properties(part.axis, run, trained=False):
        if found.fault:
            noun = KINDS[part.axis].noun
            raise ConfigError(f"{part.key}: {noun} {part.path} fails {found.name}: {found.fault}")


def kind_of(word: str) -> str:
    """The axis that a part is for, by its word, or by the methods of a path's class and the names that it is called
    with, its own or inherited. Raises `ConfigError` where unclear."""
    if not is_path(word):
        for axis, words in WORDS.items():
            if word in words:
                return axis
        known = [each for words in WORDS.values() for each in words]
        near = did_you_mean(word, known, "; ")
        raise ConfigError(f"{word}: is no memory, gate, aggregation or task, and no dotted path{near}")
    part = Part("mixer", word, word, word, {})
    check_part(part)  # it names what was meant
    thing = imported(part)
    if callable(getattr(thing, "step", None)):
        return "memory"
    names = _called(thing)
    if names is None:
        raise ConfigError(f"{word}: does not say what it is called with; give --as {', '.join(KINDS)}")
    for axis, telling in (("task", {"generator", "keys"}), ("aggregate", {"reads"}), ("gate", {"scores", "age"})):
        if names & telling:
            return axis
    return "mixer"


def _called(thing: Any) -> set[str] | None:
    """The names that a function, or an object of a class, takes when it is called; None where that is not said."""
    if inspect.isclass(thing):
        own = [vars(base) for base in thing.__mro__]
        thing = getattr(thing, "forward", None) or next((each["__call__"] for each in own if "__call__" in each), None)
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return None
    free = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return None if free else set(parameters)

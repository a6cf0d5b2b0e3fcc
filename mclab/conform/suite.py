"""Run the tests of one part (a memory, a gate, a task, ...), given by its name or dotted path.

There is one result for each property that all parts of this kind must have.
"""

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

#: The registered names of the parts on each axis.
WORDS: dict[str, Mapping[str, Any]] = {"memory": RULES, "gate": GATES, "aggregate": AGGREGATES, "task": TASKS}


@dataclass(frozen=True)
class Property:
    """The result of the test of one property: `fault` says what is wrong, and is empty if the part has the property."""

    name: str
    fault: str = ""


def suite(axis: str, word: str, args: Mapping[str, Any] | None = None) -> Iterator[Property]:
    """Yield the result for every property of a part, in order.

    `axis` is a key of `KINDS`. `word` is the name of a part of mclab, or the dotted path of the user's own part. Raises
    `ConfigError` if the part is not found or cannot be made.
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
    # With other routes the selection has a surrogate gradient, which is not the slope of the output.
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
    """Return the result of the test `holds`. If the test raises an exception, the part does not have the property."""
    try:
        return Property(name, holds())
    except ConfigError as error:
        return Property(name, str(error))
    except Exception as error:
        return Property(name, f"fails: {told(error)}")


def check(runs: Iterable[RunConfig], device: str = "cpu", say: Say = silent) -> None:
    """Check, before training, every distinct part in `runs` that is the user's own.

    Raises `ConfigError`, which names the part and the property that it does not have.
    """
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
    """Raise `ConfigError` if the part does not have a property.

    A rule, gate or aggregation is tested together with mclab's default parts, so that every error is in the part.
    """
    if part.axis != "task":
        run = _run_of(part.axis, part.path, part.keywords)
    for found in _properties(part.axis, run, trained=False):
        if found.fault:
            noun = KINDS[part.axis].noun
            raise ConfigError(f"{part.key}: {noun} {part.path} fails {found.name}: {found.fault}")


def kind_of(word: str) -> str:
    """Return the axis of a part (memory, gate, ...). Raises `ConfigError` if it is unclear.

    A name is looked up in `WORDS`. For a dotted path the axis follows from the method `step` or from the argument names
    of its calls, which may be inherited.
    """
    if not is_path(word):
        for axis, words in WORDS.items():
            if word in words:
                return axis
        known = [each for words in WORDS.values() for each in words]
        near = did_you_mean(word, known, "; ")
        raise ConfigError(f"{word}: this is not a memory, gate, aggregation or task, and not a dotted path{near}")
    if word.endswith(".py"):
        raise ConfigError(
            f"{word}: this is a file; write {word.removesuffix('.py')}.NAME, where NAME is the class or function"
        )
    part = Part("mixer", word, word, word, {})
    check_part(part)  # its error suggests what was probably meant
    thing = imported(part)
    if callable(getattr(thing, "step", None)):
        return "memory"
    names = _called(thing)
    if names is None:
        raise ConfigError(f"{word}: its arguments do not show what kind of part it is; give --as {', '.join(KINDS)}")
    for axis, telling in (("task", {"generator", "keys"}), ("aggregate", {"reads"}), ("gate", {"scores", "age"})):
        if names & telling:
            return axis
    return "mixer"


def _called(thing: Any) -> set[str] | None:
    """Return the argument names of a function, or of the calls of a class's objects.

    `None` if they are unknown or include `**kwargs`.
    """
    if inspect.isclass(thing):
        own = [vars(base) for base in thing.__mro__]
        thing = getattr(thing, "forward", None) or next((each["__call__"] for each in own if "__call__" in each), None)
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return None
    free = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return None if free else set(parameters)

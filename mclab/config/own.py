"""Check the user's own parts of a run by reading their source. Nothing is imported, so a plan does not need torch.

What the source does not show (a name that is imported or assigned, for example) is checked later by the code that
imports the part (`mclab.own.found`, `mclab.conform`).
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mclab.config.error import did_you_mean
from mclab.config.fields import keywords
from mclab.config.model import MemoryMixer, ModuleMixer
from mclab.config.own_source import PythonFile, source_of
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError, as_texts
from mclab.config.task import ModuleTask


class Kind(NamedTuple):
    """What mclab passes to the user's own part on one axis (memory, gate, ...).

    Arguments are passed by keyword, and only those that the part's signature accepts. One exception: a mixer that
    accepts neither `dim` nor `d_model` gets the width as its first positional argument.
    """

    noun: str
    made: tuple[str, ...]
    """Arguments that a class gets when it is constructed. A function gets them at each call, together with `called`."""
    called: tuple[str, ...] = ()
    """Arguments that the function, or the object of the class, gets at every call."""
    method: str = ""
    """The method that the class must have; empty if none is required."""


KINDS: dict[str, Kind] = {
    "memory": Kind("rule", ("dim", "heads", "width"), method="step"),
    "gate": Kind("gate", ("dim", "heads", "width"), ("scores", "x", "age", "visible")),
    "aggregate": Kind("aggregation", ("dim", "heads", "width"), ("reads", "weights", "q", "age", "visible")),
    "task": Kind("task", ("vocab", "length"), ("generator", "keys")),
    "mixer": Kind("mixer", ("dim", "d_model", "length")),
}


class Part(NamedTuple):
    """One of the user's own parts: `key` and `args_key` are the dotted config keys of its path and of its arguments."""

    axis: str
    key: str
    args_key: str
    path: str
    keywords: dict[str, Any]


def parts_of(run: RunConfig) -> list[Part]:
    """Return every part of a run that is the user's own."""
    found = []
    if isinstance(task := run.task, ModuleTask):
        found.append(Part("task", "task.module", "task.args", task.module, task.keywords))
    mixer = run.model.mixer
    if mixer in run.model.mixers and isinstance(mixer, ModuleMixer):
        found.append(Part("mixer", "model.mixer.module", "model.mixer.args", mixer.module, mixer.keywords))
    if mixer in run.model.mixers and isinstance(mixer, MemoryMixer):
        for axis, (path, args) in mixer.own.items():
            found.append(Part(axis, f"model.mixer.{axis}", f"model.mixer.{axis}_args", path, args))
    return found


def check_part(part: Part) -> PythonFile | None:
    """Check a part by its source, and return the source; `None` if the part is in no Python file.

    Raises `ConfigError`, which names the key, what is wrong, and what was probably meant.
    """
    try:
        source = source_of(part.path)
        if source is not None:
            source.version(part.path.rpartition(".")[2])
    except ValueError as error:
        raise ConfigError(f"{part.key}: {error}") from None
    if source is None:
        return None
    name, file = part.path.rpartition(".")[2], Path(source.file).name
    node = source.definition(name)
    if node is None:
        if not source.may_hold(name):
            raise ConfigError(f"{part.key}: {file} has no {name}{did_you_mean(name, source.defined, '; ')}")
        return source
    if part.axis != "mixer":
        _check_node(part, node, source, file)
    return source


def _check_node(part: Part, node: ast.ClassDef | ast.FunctionDef, source: PythonFile, file: str) -> None:
    kind = KINDS[part.axis]
    if isinstance(node, ast.FunctionDef):
        if kind.method:
            raise ConfigError(
                f"{part.key}: {node.name} ({file}) is a function, but a {kind.noun} must be a class with a method "
                f"{kind.method}"
            )
        _check_arguments(part, node, file, kind.made + kind.called)
        return
    methods, known = source.methods(node.name), {"nn.Module", "torch.nn.Module", "Module", "object", *source.defined}
    plain = all(ast.unparse(base) in known for each in source.lineage(node.name) for base in each.bases)
    if kind.method and kind.method not in methods and plain:
        near = did_you_mean(kind.method, methods, "; ")
        raise ConfigError(
            f"{part.key}: {node.name} ({file}) has no method {kind.method}, which a {kind.noun} needs{near}"
        )
    if "__init__" in methods:
        _check_arguments(part, methods["__init__"], file, kind.made, own=1)
    elif plain and part.keywords and not node.decorator_list:
        raise ConfigError(f"{part.args_key}: {node.name} ({file}) takes no arguments, got {', '.join(part.keywords)}")


def _check_arguments(part: Part, node: ast.FunctionDef, file: str, given: tuple[str, ...], own: int = 0) -> None:
    """Raise `ConfigError` if the arguments of `part` do not fit the function `node`.

    This is so for an argument that the function does not take, and for a required one that neither `part` has nor mclab
    passes (`given`).
    """
    called, place = node.args, f"{part.path} ({file}:{node.lineno})"
    plain = [*called.posonlyargs, *called.args][own:]
    names = [each.arg for each in (*plain, *called.kwonlyargs)]
    free = [name for name in names if name not in KINDS[part.axis].called]
    for name in part.keywords:
        if name not in free and called.kwarg is None:
            near = did_you_mean(name, free, "; ") or f"; it takes {', '.join(free) or 'none'}"
            raise ConfigError(f"{part.args_key}: {place} takes no argument {name}{near}")
    defaults = len(called.defaults)
    needed = [each.arg for each in (plain[: len(plain) - defaults] if defaults else plain)]
    needed += [each.arg for each, value in zip(called.kwonlyargs, called.kw_defaults, strict=True) if value is None]
    for name in needed:
        if name not in given and name not in part.keywords:
            ours = ", ".join(given)
            raise ConfigError(
                f"{part.args_key}: {place} has a required argument {name}, which is not given; mclab gives only {ours}"
            )


def uses_weights(path: str) -> bool:
    """Return whether the aggregation at `path` takes the gate's weights; `True` if its source does not show it."""
    source = source_of(path)
    names = source.called(path.rpartition(".")[2]) if source else None
    return names is None or "weights" in names


def checked(run: RunConfig, where: Callable[[str], str]) -> RunConfig:
    """Check the user's own parts of a run, and return the run with their versions from the sources.

    `where` gives the prefix of a message for a key. Raises `ConfigError` as `check_part` does, if the run gives another
    version than the source, and if the user's aggregation does not take the weights of a gate.
    """
    found: dict[str, int] = {}
    for part in parts_of(run):
        try:
            source = check_part(part)
        except ConfigError as error:
            raise ConfigError(*(f"{where(part.key)}: {line}" for line in error.lines)) from None
        name = part.path.rpartition(".")[2]
        found[part.axis] = source.version(name) if source else 1
        if part.axis == "aggregate" and not uses_weights(part.path) and run.model.mixer.read_gate != "none":  # type: ignore[union-attr]
            key = "model.mixer.gate"
            raise ConfigError(
                f"{where(key)}: {key}: aggregation {part.path} has no argument `weights`, so that a gate would learn "
                "nothing; take gate none"
            )
    return _with_versions(run, found, where) if found else run


def _with_versions(run: RunConfig, found: Mapping[str, int], where: Callable[[str], str]) -> RunConfig:
    mixer, task = run.model.mixer, run.task
    if isinstance(mixer, MemoryMixer) and mixer.own:
        wanted = as_texts({axis: found[axis] for axis in mixer.own if found[axis] != 1})
        if mixer.versions not in ((), wanted):
            key, now = "model.mixer.versions", ", ".join(wanted) or "1 of each"
            raise ConfigError(
                f"{where(key)}: {key}: the versions given are {', '.join(mixer.versions)}, but the source has {now}; "
                "leave this key out"
            )
        run = run.model_copy(update={"model": run.model.model_copy(
            update={"mixer": mixer.model_copy(update={"versions": wanted})})})  # fmt: skip
    if isinstance(mixer, ModuleMixer) and mixer.version == 1 and found.get("mixer", 1) != 1:
        run = run.model_copy(update={"model": run.model.model_copy(
            update={"mixer": mixer.model_copy(update={"version": found["mixer"]})})})  # fmt: skip
    if isinstance(task, ModuleTask) and task.version == 1:
        run = run.model_copy(update={"task": task.model_copy(update={"version": found["task"]})})
    return run


def slow(run: RunConfig) -> Iterator[str]:
    """Yield a line for each own part of the user that is slow, with the reason."""
    for part in parts_of(run):
        source, name = source_of(part.path), part.path.rpartition(".")[2]
        if part.axis == "memory" and source and source.definition(name) and "write" not in source.methods(name):
            yield (
                f"{part.path} has no method write, so that it is trained token by token, which is slow "
                "(docs/extending.md)"
            )
        if part.axis == "aggregate":
            yield (
                f"{part.path} is given the read of each memory separately, which is slow: each token makes as many "
                "reads as the sequence has segments"
            )


def written_versions(run: RunConfig) -> dict[str, int]:
    """Return {path: version in the config of the run} for the user's own parts."""
    mixer, task, found = run.model.mixer, run.task, dict[str, int]()
    for part in parts_of(run):
        if part.axis == "task" and isinstance(task, ModuleTask):
            found[part.path] = task.version
        elif isinstance(mixer, ModuleMixer):
            found[part.path] = mixer.version
        elif isinstance(mixer, MemoryMixer):
            found[part.path] = keywords(mixer.versions).get(part.axis, 1)
    return found


def hashes(run: RunConfig) -> dict[str, str]:
    """Return {path: first sixteen digits of the SHA-256 of the file} for the user's own parts.

    The value is `unknown` if the file cannot be read.
    """
    found = dict[str, str]()
    for part in parts_of(run):
        try:
            source = source_of(part.path)
        except ValueError:
            source = None
        found[part.path] = source.sha256[:16] if source else "unknown"
    return found

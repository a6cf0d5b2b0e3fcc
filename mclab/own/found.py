"""Find a part of the user's own by its dotted path, and make it.

Every error in it becomes a `ConfigError` of one line.
"""

import importlib
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from mclab.config.error import did_you_mean
from mclab.config.model import ModuleMixer
from mclab.config.own import KINDS, Part
from mclab.config.strict import ConfigError
from mclab.own.kept import DICE, fix_dice, kept

#: Names that a module's argument for the width may have; without one of them the width is the first argument.
_WIDTH = ("dim", "d_model")

Factory = Callable[..., Any]
#: A function of the phase (`importing`, ...) in which a module changed the process, and of what it changed (see
#: `mclab.own.kept`).
Hear = Callable[[str, list[str]], None]


def _nothing(when: str, what: list[str]) -> None:
    pass


def make(mixer: ModuleMixer, dim: int, length: int, hear: Hear = _nothing) -> nn.Module:
    """Make the user's module on the CPU, with torch's present random state, which is restored afterwards.

    The module gets `args` by name. It gets the width as `dim` or `d_model` if it takes one of these names, else as its
    first argument. It gets the task's length as `length` if it takes this name. Values in `args` take precedence.
    """
    part = Part("mixer", "model.mixer.module", "model.mixer.args", mixer.module, mixer.keywords)
    build = found(part, hear)
    names = _names(build) or []
    width = next((name for name in _WIDTH if name in names), None)
    given = {**({width: dim} if width else {}), "length": length}
    made = _made(part, build, given, () if width else (dim,), hear)
    if not isinstance(made, nn.Module):
        raise ConfigError(
            f"{part.key}: {part.path} must make a torch module, but makes an object of type {type(made).__name__}"
        )
    return made


def make_part(part: Part, given: Mapping[str, Any], hear: Hear = _nothing) -> Any:
    """Make a rule, gate, aggregation or task.

    For a class, return an object, made as `make` makes modules, with those values of `given` that the class takes. For
    a function, return the function with its arguments bound.
    """
    build = found(part, hear)
    if inspect.isclass(build):
        return _made(part, build, given, (), hear)
    return partial(build, **_bound(part, build, given, KINDS[part.axis].called)[1])


def _made(part: Part, build: Factory, given: Mapping[str, Any], first: tuple[int, ...], hear: Hear) -> Any:
    placed, named = _bound(part, build, given, (), first)
    seed, changed = torch.initial_seed(), list[str]()
    try:
        with torch.enable_grad(), torch.device("cpu"), kept(changed.extend):
            made = build(*placed, **named)
            if torch.initial_seed() != seed:
                changed.append("torch's random seed, so that its start is the same for every seed")
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{_noun(part)} cannot be made: {told(error)}") from error
    hear("making", [what for what in changed if what != DICE])
    if isinstance(made, nn.Module):
        for name, value in (*made.named_parameters(), *made.named_buffers()):
            _check_value(_noun(part), name, value)
    return made


def _noun(part: Part) -> str:
    """Return the beginning of messages about a part, such as `rule my_rules.Leaky`."""
    return f"{KINDS[part.axis].noun} {part.path}"


def _check_value(noun: str, name: str, value: torch.Tensor) -> None:
    """Raise `ConfigError` if a tensor cannot be stacked with those of other replicas, or moved with the model."""
    if is_lazy(value):
        raise ConfigError(
            f"{noun} has {name} without a size (as in nn.LazyLinear); give its sizes, as in nn.Linear(dim, ...)"
        )
    if value.device.type != "cpu":
        raise ConfigError(f"{noun} makes {name} on {value.device}; leave out the device, because --device decides it")
    wrong = value.is_floating_point() and value.dtype != torch.get_default_dtype()
    if isinstance(value, nn.Parameter) and wrong:
        raise ConfigError(
            f"{noun} makes {name} in {str(value.dtype).removeprefix('torch.')}; leave out the dtype, because "
            "train.precision decides it"
        )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within the block torch's CPU generator is seeded with `seed`; afterwards its old state is restored."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def told(error: BaseException) -> str:
    """Return an error of the user's code in one line, with the last place of its traceback outside torch and mclab."""
    text = " ".join(str(error).split())
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    if isinstance(error, SyntaxError) and error.filename:
        place = f" ({Path(error.filename).name}:{error.lineno})" if "line" not in text else ""
    else:
        place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text}{place}"


def _is_theirs(file: str) -> bool:
    ours = (Path(torch.__file__).parent, Path(__file__).parent.parent)
    return not file.startswith("<") and not any(Path(file).is_relative_to(folder) for folder in ours)


def found(part: Part, hear: Hear = _nothing) -> Factory:
    """Import the class or function that the dotted path of `part` names."""
    where, _, name = part.path.rpartition(".")
    module = _imported(part.key, where, hear)
    thing: Any = getattr(module, name, None)
    if thing is None:
        here = [word for word, value in vars(module).items() if callable(value)]
        raise ConfigError(f"{part.key}: {where} ({module.__file__}) has no {name}{did_you_mean(name, here, '; ')}")
    if not callable(thing):
        raise ConfigError(f"{part.key}: {part.path} is not a class or function")
    build: Factory = thing
    return build


def _imported(key: str, where: str, hear: Hear) -> ModuleType:
    """Import the module `where`, also from the current directory, which is not in `sys.path` of an installed command.

    Random numbers that it draws during the import are the same in every process.
    """
    if where in sys.modules:
        return importlib.import_module(where)
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.append(os.getcwd())
    importlib.invalidate_caches()
    try:
        with torch.enable_grad(), kept():
            fix_dice()
            with kept(partial(hear, "importing")):
                return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name and f"{where}.".startswith(f"{error.name}."):
            raise ConfigError(_missing(key, error.name)) from None
        raise ConfigError(f"{key}: {where} cannot be imported: {told(error)}") from error
    except (Exception, SystemExit) as error:  # a script may call sys.exit
        raise ConfigError(f"{key}: {where} cannot be imported: {told(error)}") from error


def _missing(key: str, name: str) -> str:
    parent, _, last = name.rpartition(".")
    folders = list(getattr(sys.modules.get(parent), "__path__", [])) if parent else [os.getcwd()]
    beside = [found.name for found in pkgutil.iter_modules(folders)]
    place = f"in {parent}" if parent else f"in the current folder ({os.getcwd()}) or among the installed packages"
    return f"{key}: there is no module {last} {place}{did_you_mean(last, beside, '; ')}"


def _names(build: Factory) -> list[str] | None:
    """Return the names of the arguments that `build` takes; `None` if it has no signature."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    try:
        return [name for name, each in inspect.signature(build).parameters.items() if each.kind in by_name]
    except (TypeError, ValueError):
        return None


def _bound(
    part: Part, build: Factory, given: Mapping[str, Any], later: Collection[str] = (), first: tuple[int, ...] = ()
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Return the positional and the keyword arguments for a call of `build`.

    `first` are the positional arguments. `later` names arguments whose values are not known yet; `build` must accept
    them. Raises `ConfigError` if the arguments do not fit.
    """
    names = _names(build)
    if names is None:  # there is no signature to check against
        return first, part.keywords
    named = {**{name: value for name, value in given.items() if name in names}, **part.keywords}
    signature = inspect.signature(build)
    try:
        signature.bind(*first, **named, **{name: None for name in later if name in names})
    except TypeError as error:
        strange = [name for name in part.keywords if name not in names]
        near = did_you_mean(strange[0], names, "; ") if strange else ""
        called = ", ".join([*map(str, first), *(f"{name}={value!r}" for name, value in named.items())])
        raise ConfigError(f"{part.args_key}: {part.path}{signature}, called with ({called}): {error}{near}") from None
    return first, named


def only_named(call: Factory, names: Collection[str]) -> tuple[str, ...]:
    """Return those of `names` that `call`, a function or a callable object, takes as arguments."""
    taken = _names(call.forward if isinstance(call, nn.Module) else call) or ()
    return tuple(name for name in names if name in taken)

"""A user's own torch module: found by its dotted path, and made. Every fault of it is a `ConfigError` of one line."""

import importlib
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from mclab.config.guess import did_you_mean
from mclab.config.model import ModuleMixer
from mclab.config.strict import ConfigError
from mclab.models.kept import DICE, fix_dice, kept

_KEY, _ARGS = "model.mixer.module", "model.mixer.args"
#: What a module may call its width; else it is the first argument.
_WIDTH = ("dim", "d_model")

Factory = Callable[..., Any]
#: Hears in which part of its life a module changed what of the process (see `mclab.models.kept`).
Hear = Callable[[str, list[str]], None]


def _nothing(when: str, what: list[str]) -> None:
    pass


def make(mixer: ModuleMixer, dim: int, length: int, hear: Hear = _nothing) -> nn.Module:
    """The user's module, on the CPU, drawn from torch's present random state, which is the same afterwards.

    It is called with `args` by name; with the width as `dim` or `d_model` where it takes one of them, else first; and
    with the task's length as `length` where it takes that. What stands in `args` comes before both.
    """
    build = _factory(mixer.module, hear)
    first, named = _arguments(build, mixer, dim, length)
    seed, changed = torch.initial_seed(), list[str]()
    try:
        with torch.enable_grad(), torch.device("cpu"), kept(changed.extend):
            made = build(*first, **named)
            if torch.initial_seed() != seed:
                changed.append("torch's random seed, so that it starts alike from every seed")
    except (Exception, SystemExit) as error:
        raise ConfigError(f"mixer {mixer.module} cannot be made: {told(error)}") from error
    if not isinstance(made, nn.Module):
        raise ConfigError(f"{_KEY}: {mixer.module} makes no torch module but {type(made).__name__}")
    hear("making", [what for what in changed if what != DICE])
    for name, value in (*made.named_parameters(), *made.named_buffers()):
        _check_value(mixer.module, name, value)
    return made


def _check_value(path: str, name: str, value: torch.Tensor) -> None:
    """Raise `ConfigError` for what cannot be stacked with the other replicas' and moved with the model."""
    if is_lazy(value):
        raise ConfigError(
            f"mixer {path} has {name} without a size, as nn.LazyLinear leaves it to the first input; "
            f"give its sizes: nn.Linear(dim, ...)"
        )
    if value.device.type != "cpu":
        raise ConfigError(f"mixer {path} makes {name} on {value.device}; leave out the device, --device decides")
    wrong = value.is_floating_point() and value.dtype != torch.get_default_dtype()
    if isinstance(value, nn.Parameter) and wrong:
        raise ConfigError(
            f"mixer {path} makes {name} in {str(value.dtype).removeprefix('torch.')}; "
            f"leave out the dtype, train.precision decides"
        )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's random numbers on the CPU from `seed`; afterwards their state is as before."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def told(error: BaseException) -> str:
    """An exception of the user's code in a line, with the last place outside torch that it went through."""
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


def _factory(path: str, hear: Hear) -> Factory:
    where, _, name = path.rpartition(".")
    module = _imported(where, hear)
    found = getattr(module, name, None)
    if found is None:
        here = [word for word, value in vars(module).items() if callable(value)]
        raise ConfigError(f"{_KEY}: {where} ({module.__file__}) has no {name}{did_you_mean(name, here, '; ')}")
    if not callable(found):
        raise ConfigError(f"{_KEY}: {path} is no class or function")
    return found


def _imported(where: str, hear: Hear) -> ModuleType:
    """The module, also from the current directory, which a command's own path lacks.

    What it draws while it is imported is the same in every process.
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
            raise ConfigError(_missing(error.name)) from None
        raise ConfigError(f"{_KEY}: {where} cannot be imported: {told(error)}") from error
    except (Exception, SystemExit) as error:  # a script may end itself
        raise ConfigError(f"{_KEY}: {where} cannot be imported: {told(error)}") from error


def _missing(name: str) -> str:
    parent, _, last = name.rpartition(".")
    folders = list(getattr(sys.modules.get(parent), "__path__", [])) if parent else [os.getcwd()]
    beside = [found.name for found in pkgutil.iter_modules(folders)]
    place = f"in {parent}" if parent else f"here ({os.getcwd()}) nor among the installed ones"
    return f"{_KEY}: there is no module {last} {place}{did_you_mean(last, beside, '; ')}"


def _arguments(build: Factory, mixer: ModuleMixer, dim: int, length: int) -> tuple[tuple[int, ...], dict[str, Any]]:
    """What to call it with: by place and by name."""
    try:
        signature = inspect.signature(build)
    except (TypeError, ValueError):  # built without one
        return (dim,), mixer.keywords
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [name for name, each in signature.parameters.items() if each.kind in by_name]
    width = next((name for name in _WIDTH if name in names), None)
    ours = {**({width: dim} if width else {}), **({"length": length} if "length" in names else {})}
    first, named = () if width else (dim,), {**ours, **mixer.keywords}
    try:
        signature.bind(*first, **named)
    except TypeError as error:
        strange = [name for name in mixer.keywords if name not in names]
        near = did_you_mean(strange[0], names, "; ") if strange else ""
        called = ", ".join([*map(str, first), *(f"{name}={value!r}" for name, value in named.items())])
        raise ConfigError(f"{_ARGS}: {mixer.module}{signature}, called with ({called}): {error}{near}") from None
    return first, named

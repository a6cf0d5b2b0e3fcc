"""What belongs to the whole process is put back after a user's code, and named."""

import os
import random
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mclab.config.strict import ConfigError
from mclab.conform import check_module
from mclab.models.lm import LM
from mclab.own.found import make, seeded
from mclab.own.kept import kept
from tests.commands import fine, mclab, no_plots, one_line, records
from tests.own_modules import own, run_of

__all__ = ["own"]

#: Each thing, code that changes it, and how it is seen.
THINGS: dict[str, tuple[str, Callable[[], Any]]] = {
    "the current folder": ("os.chdir('/')", os.getcwd),
    "environment variables OWN_X": ("os.environ['OWN_X'] = '1'", lambda: dict(os.environ)),
    "warnings filters": ("warnings.simplefilter('ignore')", lambda: list(warnings.filters)),  # type: ignore[attr-defined]
    "signal handlers SIGINT": ("signal.signal(signal.SIGINT, signal.SIG_IGN)", lambda: signal.getsignal(signal.SIGINT)),
    "torch's default dtype": ("torch.set_default_dtype(torch.float64)", torch.get_default_dtype),
    "torch's default device": ("torch.set_default_device('meta')", torch.get_default_device),
    "torch's grad mode": ("torch.set_grad_enabled(False)", torch.is_grad_enabled),
    "torch's number of threads": ("torch.set_num_threads(3)", torch.get_num_threads),
    "torch's deterministic flags": (
        "torch.backends.cudnn.deterministic = torch.backends.cudnn.benchmark = True",
        lambda: (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark),
    ),
    "torch's precision of fp32 products": (
        "torch.set_float32_matmul_precision('high')",
        torch.get_float32_matmul_precision,
    ),
    "torch's random numbers": ("torch.manual_seed(3)", lambda: torch.get_rng_state().tolist()),
    "numpy's random numbers": ("numpy.random.seed(3)", lambda: np.random.get_state()[1].tolist()),
    "python's random numbers": ("random.seed(3)", random.getstate),
}
IMPORTS = "import os, random, signal, warnings\nimport numpy\n"
MIXER = """
class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inner = nn.Linear(dim, dim)
        {made}
    def forward(self, x):
        {called}
        return self.inner(x)
"""


def mixer(made: str = "pass", called: str = "pass") -> str:
    return IMPORTS + MIXER.format(made=made, called=called)


def state() -> list[Any]:
    return [see() for _, see in THINGS.values()]


def said_of(name: str = "Mixer") -> list[str]:
    said: list[str] = []
    check_module(run_of(name, train={"precision": "fp32"}), say=said.append)
    return said


@pytest.mark.parametrize("name", THINGS)
def test_each_thing_is_put_back_and_named(name: str) -> None:
    code, before, named = THINGS[name][0], state(), list[str]()
    space = {"os": os, "random": random, "signal": signal, "warnings": warnings, "torch": torch, "numpy": np}
    for quick in (False, True):
        with pytest.raises(ZeroDivisionError), kept(named.extend, quick=quick and "torch's g" in name):
            exec(f"{code}; 1 / 0", space)
        assert state() == before
    assert named[0] == name
    assert set(named) == {name}


def test_nothing_changed_is_nothing_told_and_a_thread_may_use_it_too() -> None:
    named, handler = list[str](), signal.getsignal(signal.SIGINT)

    def use() -> None:
        with kept(named.extend):
            torch.set_default_dtype(torch.float64)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # which Python allows to the main thread alone

    with kept(pytest.fail):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert named == ["torch's default dtype"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_module_that_changes_everything_is_said_in_a_line_and_changes_nothing(own: Any) -> None:
    codes = [code for code, _ in THINGS.values()]
    calling = [code for code in codes if "grad" not in code]  # without it no gradient would come back
    own(IMPORTS + "\n".join(codes) + "\n" + mixer("; ".join(codes), "; ".join(calling)))
    before = state()
    (line,) = said_of()
    assert state() == before
    first, made, called = line.split("; ", 2)
    every = ", ".join(THINGS)
    assert line.startswith("warning: mixer own_mixers.Mixer: importing it changes ")
    assert line.endswith("; mclab undoes this")
    for name in every.split(", "):
        assert name in first
        assert name in made or name == "torch's random numbers"
        assert name in called or name == "torch's grad mode"
    assert "torch's random seed, so that its start is the same for every seed" in made


def test_a_clean_module_is_said_nothing_of(own: Any) -> None:
    own(mixer())
    assert said_of() == []


def test_the_model_that_trains_puts_back_too(own: Any) -> None:
    """Import, start and every call, whatever the first call did."""
    own(IMPORTS + "torch.set_default_dtype(torch.float64)\n" + mixer("os.chdir('/')", "os.environ['OWN_X'] = '1'"))
    before = state()
    model = LM(run_of("Mixer", train={"precision": "fp32"}), 2)
    assert state() == before
    tokens = torch.zeros(2, 1, 16, dtype=torch.long)
    for _ in range(3):
        model(tokens, tokens[..., :1])
        assert state() == before


def test_what_a_module_draws_while_it_is_imported_is_the_same_everywhere(own: Any) -> None:
    own(IMPORTS + "drawn = torch.rand(3).tolist() + [random.random(), numpy.random.rand()]\n" + mixer())
    own(IMPORTS + "drawn = torch.rand(3).tolist() + [random.random(), numpy.random.rand()]\n" + mixer(), "own_again")
    import sys

    for seed, where in ((1, "own_mixers"), (2, "own_again")):
        chosen = run_of("Mixer").model.mixer.model_copy(update={"module": f"{where}.Mixer"})
        random.seed(seed)
        np.random.seed(seed)
        with seeded(seed):
            make(chosen, 8, 16)
    assert sys.modules["own_mixers"].drawn == sys.modules["own_again"].drawn


@pytest.mark.parametrize(
    ("made", "called", "line"),
    [
        (
            "self.lazy = nn.LazyLinear(dim)",
            "pass",
            "has lazy.weight without a size (as in nn.LazyLinear); give its sizes, as in nn.Linear(dim, ...)",
        ),
        (
            "self.w = nn.Parameter(torch.ones(dim, device='meta'))",
            "pass",
            "makes w on meta; leave out the device, because --device decides it",
        ),
        (
            "self.register_buffer('b', torch.ones(dim, device='meta'))",
            "pass",
            "makes b on meta; leave out the device, because --device decides it",
        ),
        (
            "self.double()",
            "pass",
            "makes inner.weight in float64; leave out the dtype, because train.precision decides it",
        ),
        (
            "self.half()",
            "pass",
            "makes inner.weight in float16; leave out the dtype, because train.precision decides it",
        ),
        ("pass", "x = x.detach()", "passes no gradient on to its input; remove what cuts it (detach?)"),
        (
            "pass",
            "return x + torch.from_numpy(numpy.random.rand(1)).to(x) * self.inner(x)",
            "keeps state: the same input gives a different output after a call with another input",
        ),
    ],
)
def test_what_could_not_train_is_refused_by_name(own: Any, made: str, called: str, line: str) -> None:
    own(mixer(made, called))
    with pytest.raises(ConfigError) as caught:
        said_of()
    assert str(caught.value) == f"mixer own_mixers.Mixer {line}"


#: A grid of one run.
GRID = """
base:
  task: {vocab: 16, length: 16, pairs: [1, 2]}
  model: {dim: 8, layers: 1, mixer: {name: module, module: own_mixers.Mixer}}
  train: {steps: 2, batch: 4, checkpoint_every: 1}
  eval: {valid: 4, test: 4}
"""


def test_results_are_where_the_user_said(own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)
    Path("elsewhere").mkdir()
    own(
        IMPORTS
        + "os.chdir('elsewhere')\n"
        + mixer("os.path.isdir('elsewhere') and os.chdir('elsewhere')", "os.chdir('/')")
    )
    Path("own.yaml").write_text(GRID)
    done = fine("ablate", "--grid", "own.yaml", "--workers", 1, "--out", "o")
    assert done.err.count("warning: mixer own_mixers.Mixer: importing it changes the current folder") == 1
    assert f"wrote into {Path('o', 'tables')}: table.csv" in done.err
    assert len(records(tmp_path / "o")) == 1
    assert not list(Path("elsewhere").iterdir())
    assert Path.cwd() == tmp_path


def test_a_lazy_module_is_a_line_of_the_command(own: Any) -> None:
    own(mixer("self.lazy = nn.LazyLinear(dim)"))
    Path("own.yaml").write_text(GRID)
    one_line(mclab("ablate", "--grid", "own.yaml", "--workers", 1), "own_mixers.Mixer has lazy.weight without a size")
    assert not Path("runs/own").exists()

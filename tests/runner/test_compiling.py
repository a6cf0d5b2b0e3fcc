"""`--compile auto`: what it chooses, and what it says."""

import re

import pytest

from mclab.config.options import RunOptions
from mclab.config.outcome import Outcome
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.runner import compiling
from mclab.runner.compiling import Failures, decided, graphs, worth
from mclab.runner.history import History

AUTO = RunOptions(device="cpu", compile="auto")


def runs(count: int, steps: int = 2000, **mixer: object) -> list[RunConfig]:
    fixed = {"model": {"mixer": mixer}, "train": {"steps": steps}}
    return [parse_run({**fixed, "seed": seed}) for seed in range(count)]


def chosen(options: RunOptions, what: list[RunConfig], processes: int = 1, device: str = "cpu") -> tuple[str, str]:
    said: list[str] = []
    found = decided(options, what, len(what), processes, History(device=device), said.append)
    return found.compile, said[0] if said else ""


def test_auto_compiles_where_the_saving_is_several_times_what_it_takes() -> None:
    many, few = runs(200, memory="titans"), runs(2, 10, memory="titans")
    which, said = chosen(AUTO, many)
    assert which == "on"
    assert said.startswith("--compile auto: on, since it saves each process about ")
    which, said = chosen(AUTO, few)
    assert which == "off"
    assert re.fullmatch(
        r"--compile auto: off, since it would save each process about \d s and takes about \d+ \w+; "
        r"it must save 4 times what it takes",
        said,
    )
    saved, takes = worth(many, 200, 1, History())
    assert worth(many, 200, 2, History()) == pytest.approx((saved / 2, takes))


def test_each_shape_is_compiled_and_a_sampled_shape_anew_for_each_run() -> None:
    both = [*runs(3), *runs(1, memory="titans")]
    alone = [worth(each, len(each), 1, History())[1] for each in (both[:3], both[3:])]
    assert worth(both, 4, 1, History())[1] == pytest.approx(sum(alone))
    assert worth(both, 8, 1, History(), sampled=True)[1] == pytest.approx(alone[0] + 2 * alone[1])
    (annealed,) = runs(1, aggregate="ssc")
    assert (graphs(annealed), graphs(both[0])) == (2, 1)


def test_what_makes_auto_impossible_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    many = runs(200)
    assert chosen(AUTO, many, device="cuda") == (
        "off",
        "--compile auto: off, since what it saves on a GPU is not measured",
    )
    monkeypatch.setattr(compiling, "missing", lambda device: "no C++ compiler")
    assert chosen(AUTO, many) == ("off", "--compile auto: off, since no C++ compiler")
    assert chosen(RunOptions(device="cpu"), many) == ("off", "")
    assert chosen(RunOptions(device="cpu", compile="on"), many) == ("on", "")


def test_a_failure_of_the_compiler_is_said_once() -> None:
    said: list[str] = []
    failures = Failures(said.append)
    for state in ("no", "yes", "no (no register (r9))", "no (no register (r9))"):
        failures.note(Outcome("done", provenance={"compiled": state}))
    assert said == ["--compile: steps are eager, since compiling failed: no register (r9)"]

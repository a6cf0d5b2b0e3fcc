"""The suite of each kind of part: all of ours pass it, and a part with one fault is refused by the property's name."""

from pathlib import Path
from typing import Any

import pytest

from mclab.config.model import RULES
from mclab.config.strict import ConfigError
from mclab.conform import kind_of, suite
from mclab.conform.suite import WORDS
from tests.commands import fine, mclab, one_line

#: Kind, part of tests/own/parts.py, and the first property that it fails.
FAULTS = [
    ("memory", "LeakyRule", "causality"),
    ("memory", "StatefulRule", "no state between calls"),
    ("memory", "RandomRule", "determinism"),
    ("memory", "HiddenRule", "state passing"),
    ("memory", "WrongFastRule", "fast equals step"),
    ("memory", "ForgetfulRule", "fast equals step"),
    ("memory", "CutRule", "gradients"),
    ("memory", "UnusedRule", "gradients"),
    ("gate", "leaky_gate", "causality"),
    ("gate", "mixing_gate", "batch rows independent"),
    ("gate", "random_gate", "determinism"),
    ("gate", "StatefulGate", "no state between calls"),
    ("aggregate", "leaky_aggregate", "causality"),
    ("aggregate", "random_aggregate", "determinism"),
    ("aggregate", "unmasked_aggregate", "state passing"),
    ("aggregate", "StatefulAggregate", "no state between calls"),
    ("task", "random_task", "determinism"),
    ("task", "StatefulTask", "no state between calls"),
    ("task", "small_task", "shape"),
    ("task", "wide_task", "shape"),
]


def first_fault(kind: str, word: str, args: dict[str, Any]) -> tuple[str, str]:
    return next(((each.name, each.fault) for each in suite(kind, word, args) if each.fault), ("", ""))


@pytest.mark.parametrize(("kind", "part", "property_"), FAULTS)
def test_a_fault_has_the_name_of_its_property(kind: str, part: str, property_: str) -> None:
    path = f"tests.own.parts.{part}"
    assert kind_of(path) == kind
    args = {"vocab": 16, "length": 16} if kind == "task" else {}
    assert first_fault(kind, path, args)[0] == property_


def test_a_kind_may_be_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a class of another file, one of ours among them; what is only imported or assigned has one too."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_heirs.py").write_text(
        "from functools import partial\n"
        "from torch import nn\n"
        "from mclab.memories.linear import LinearMemory\n"
        "from tests.own.parts import CutRule, StatefulGate, StatefulTask, leaky_aggregate\n"
        "class Rule(CutRule): pass\n"
        "class Ours(LinearMemory): pass\n"
        "class Gate(StatefulGate): pass\n"
        "class Task(StatefulTask): pass\n"
        "class Mixer(nn.GRU): pass\n"
        "class Free:\n    def __call__(self, **given): pass\n"
        "aggregate = partial(leaky_aggregate)\n"
    )
    kinds = {"Rule": "memory", "Ours": "memory", "Gate": "gate", "Task": "task", "Mixer": "mixer"}
    kinds |= {"aggregate": "aggregate", "leaky_aggregate": "aggregate"}
    assert {name: kind_of(f"my_heirs.{name}") for name in kinds} == kinds
    with pytest.raises(
        ConfigError, match=r"my_heirs\.Free: its arguments do not show what kind of part it is; give --as memory, "
    ):
        kind_of("my_heirs.Free")
    with pytest.raises(ConfigError, match=r"my_heirs\.py: this is a file; write my_heirs\.NAME"):
        kind_of("my_heirs.py")
    with pytest.raises(ConfigError, match=r"my_heirs\.Rulle: my_heirs.py has no Rulle; did you mean Rule\?"):
        kind_of("my_heirs.Rulle")


def ours() -> list[tuple[str, str]]:
    """Every part that is registered, as it is now."""
    return [(kind, word) for kind, words in WORDS.items() for word in words if (kind, word) != ("task", "module")]


@pytest.mark.parametrize(("kind", "word"), ours())
def test_our_own_parts_pass(kind: str, word: str) -> None:
    assert first_fault(kind, word, {}) == ("", "")


def test_a_part_more_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "brand_new", RULES["linear"])
    assert ("memory", "brand_new") in ours()


def test_the_command_names_the_property_and_ends_with_2() -> None:
    done = mclab("check", "tests.own.parts.leaky_gate")
    assert done.code == 2
    assert "causality                 changing token" in done.out
    assert done.err.startswith("tests.own.parts.leaky_gate, as a gate, fails causality")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("part", "property_"),
    [("LeakyRule", "causality"), ("StatefulRule", "no state between calls"), ("RandomRule", "determinism")],
)
def test_a_run_with_a_faulty_part_is_refused_by_the_property(tmp_path: Path, part: str, property_: str) -> None:
    out = tmp_path / "run"
    path = f"tests.own.parts.{part}"
    done = mclab("train", f"model.mixer.memory={path}", "task.length=16", "task.pairs=1", "--out", out)
    one_line(done, f"model.mixer.memory: rule {path} fails {property_}: ")
    assert not out.exists()


def test_the_command_takes_a_word_and_json() -> None:
    found = fine("check", "context", "--json").json
    assert {each["fault"] for each in found} == {""}
    assert mclab("check", "tests.own.parts.nothing").code == 2
    assert "did you mean titans?" in mclab("check", "titens").err

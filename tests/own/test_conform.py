"""The suite of each kind of part: all of ours pass it, and a part with one fault is refused by the property's name."""

from typing import Any

import pytest

from mclab.config.model import RULES
from mclab.conform import kind_of, suite
from mclab.conform.suite import WORDS
from tests.commands import fine, mclab

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


def test_the_command_takes_a_word_and_json() -> None:
    found = fine("check", "context", "--json").json
    assert {each["fault"] for each in found} == {""}
    assert mclab("check", "tests.own.parts.nothing").code == 2
    assert "did you mean titans?" in mclab("check", "titens").err

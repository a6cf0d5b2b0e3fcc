"""The table of rules: it is about the memories that there are, says what they do, and a row and a file add one."""

import inspect
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft7Validator

import mclab.memories
from mclab.config.ids import inert, run_id
from mclab.config.keys import all_keys
from mclab.config.model import RULES, MemoryMixer, Rule
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.memories import MEMORIES
from mclab.memories.base import Memory
from mclab.memories.own import OwnMemory
from mclab.plan.schema import grid_schema
from mclab.runner.estimate import seconds
from mclab.train import train_pack
from tests.caching import test_memories
from tests.commands import fine, grid_file, no_plots, records, with_grid
from tests.covering import full, label
from tests.models import cases, test_lm, test_sizes
from tests.registries import words
from tests.tolerances import FP64, PACK
from tests.train import test_words


def test_every_memory_has_a_row_and_every_row_its_file() -> None:
    modules = [import_module(f"mclab.memories.{found.name}") for found in pkgutil.iter_modules(mclab.memories.__path__)]
    kinds = {kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)}
    whole = {kind for kind in kinds if issubclass(kind, Memory) and not inspect.isabstract(kind)} - {OwnMemory}
    assert {MEMORIES[word] for word in RULES} == whole
    assert len(MEMORIES) == len(RULES) == len(whole)


def test_only_what_descends_may_be_deep() -> None:
    assert [word for word, rule in RULES.items() if rule.may_be_deep and not rule.descends] == []


@pytest.mark.parametrize("memory", RULES)
def test_a_row_says_what_the_rule_does_to_what_is_held(memory: str) -> None:
    """It forgets where a token without key and value changes the memory, and looks where what a token writes depends
    on what is held. (A rule that looks back writes the last token once more with the first of these, hence two.)"""
    rule, (layer, (x, _, k, v)) = RULES[memory], test_memories.layer_and_inputs(memory=memory, depth=1, chunk=1)
    silence = (torch.arange(k.shape[2]) < 4).double()[:, None]
    loud, silent = (layer.memory.tokens(x, *(layer._fold(z * some) for z in (k, v))) for some in (1.0, silence))

    def after(state: Any, tokens: Any, *places: int) -> Any:
        for t in places:
            state = layer.memory.step(state, tokens.at(t))
        return state

    def changed(one: Any, other: Any) -> torch.Tensor:
        return other.weights[0] - one.weights[0]

    first = layer.memory.begin(layer.memory.initial(loud))
    held, nothing = after(first, silent, 0, 1, 2, 3, 4), after(first, silent, 4)
    assert bool(changed(held, after(held, silent, 5)).any()) == (rule.decays or rule.momentum)
    writes = [changed(after(state, silent, 6), after(state, loud, 6)) for state in (held, nothing)]
    looks = not torch.allclose(*writes, atol=FP64, rtol=0)
    assert looks == (rule.erases or rule.objective == "l2")


@pytest.mark.parametrize("key", ["depth", "chunk", "max_lr", "decay_to", "memory_norm"])
def test_a_key_of_some_memories_names_those_that_it_changes(key: str) -> None:
    (meaning,) = (each.meaning for each in all_keys() if (each.path, each.of) == (f"model.mixer.{key}", "memory"))
    named = meaning.partition(":")[0].removeprefix("for ").removesuffix(" of depth 2 and more")
    assert named.split(", ") == [word for word in RULES if key not in MemoryMixer(memory=word).inert]


@pytest.mark.parametrize(
    ("aggregate", "gate", "read"),
    [
        ("grm", "input", "input"),
        ("ssc", "context", "context"),
        ("residual", "input", "none"),
        ("none", "input", "none"),
    ],
)
def test_the_gate_of_what_is_not_weighed_is_none(aggregate: str, gate: str, read: str) -> None:
    assert MemoryMixer(aggregate=aggregate, gate=gate).read_gate == read


@pytest.fixture
def leaky(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One memory more: its row, and own/leaky.py as a file of mclab/memories/."""
    monkeypatch.setitem(RULES, "leaky", Rule(decays=True, constants=1))
    here = str(Path(__file__).with_name("own"))
    monkeypatch.setattr(mclab.memories, "__path__", [*mclab.memories.__path__, here])
    yield "leaky"
    sys.modules.pop("mclab.memories.leaky", None)
    vars(mclab.memories).pop("leaky", None)


def of(**model: Any) -> RunConfig:
    return parse_run({"model": model})


def test_a_new_memory_is_a_word_of_configs(leaky: str) -> None:
    run = of(mixer={"memory": leaky})
    assert of(mixer=leaky) == run
    assert of(pattern=[leaky, "attention/4"]).model.mixers[0] == MemoryMixer(memory=leaky, aggregate="none").canonical()
    assert len({run_id(of(mixer=word)) for word in RULES}) == len(RULES)
    assert run_id(of(mixer={"memory": leaky, "depth": 3, "chunk": 4})) == run_id(run)
    assert "model.mixer.chunk" in inert(run)
    with pytest.raises(
        ConfigError, match=r'model\.mixer\.memory: must be leaky \| linear .*got "leeky"; did you mean leaky'
    ):
        of(mixer={"memory": "leeky"})
    with pytest.raises(ConfigError, match="did you mean leaky"):
        of(pattern=["leeky"])


def test_without_its_row_it_is_none() -> None:
    with pytest.raises(ConfigError, match=r'model\.mixer\.memory: must be linear \| retnet .*, got "leaky"'):
        of(mixer={"memory": "leaky"})


def test_a_new_memory_is_told_of(leaky: str) -> None:
    (found,) = (key for key in fine("keys", "--json").json if key["path"] == "model.mixer.memory")
    assert found["type"].split(" | ") == list(RULES)
    grid = {"base": {"model": {"mixer": leaky}}, "grid": {"model.mixer.memory": [leaky], "model.pattern": [[leaky]]}}
    assert list(Draft7Validator(grid_schema()).iter_errors(grid)) == []


@pytest.mark.parametrize(
    "case",
    full({"segmentation": words("segmentation", but=["listed"]), "aggregate": words("aggregate", but=["residual"])}),
    ids=label,
)
@pytest.mark.parametrize("init", words("init"))
def test_a_new_memory_is_counted_and_equals_its_definition(leaky: str, case: dict[str, str], init: str) -> None:
    """Parameters and state by arithmetic are those of its tensors; the fast form is the loop over tokens."""
    keys = {"memory": leaky, "depth": 2, "gate": "context", "init": init, **case}
    test_lm.test_parameter_arithmetic_and_finite_gradients_everywhere(cases.config("memory", keys | {"heads": 2}))
    test_sizes.test_state_arithmetic_is_what_the_definition_needs(keys)
    test_memories.assert_equals_definition(keys | {"segment": 3})


def test_a_new_memory_trains_in_a_pack_of_two_as_alone(leaky: str) -> None:
    runs = [test_words.run_of({"mixer": {"memory": leaky, "segment": 4}}, seed) for seed in (0, 1)]
    *pack, alone = (*train_pack(runs, device="cpu"), *train_pack(runs[1:], device="cpu"))
    assert [outcome.status for outcome in (*pack, alone)] == ["done"] * 3
    one, two, single = (torch.tensor([point["loss"] for point in outcome.curve]) for outcome in (*pack, alone))
    torch.testing.assert_close(two, single, atol=PACK, rtol=0)
    assert not torch.equal(one, two)


def test_a_new_memory_costs_what_others_of_its_kind_do(leaky: str) -> None:
    linear, found, retnet = (seconds([of(mixer=word)]) for word in ("linear", leaky, "retnet"))
    assert linear < found
    assert found == pytest.approx(retnet, rel=1e-3)  # two parameters more


def test_a_new_memory_stands_in_a_table(leaky: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_plots(monkeypatch)
    grid = grid_file(tmp_path, with_grid(f"grid: {{model.mixer.memory: [linear, {leaky}]}}"))
    done = fine("ablate", "--grid", grid, "--workers", 1, "--out", tmp_path / "out")
    assert {"linear", leaky} <= {line.partition(" ")[0] for line in done.out.splitlines()}
    assert [record["status"] for record in records(tmp_path / "out").values()] == ["done"] * 4

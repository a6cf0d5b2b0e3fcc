"""Space files: axes, conditions, objectives, and what is refused with its line."""

from pathlib import Path
from typing import Any

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.space import changes
from mclab.plan.space_load import load_space
from mclab.plan.space_trials import Objective, SpaceAxis, Trial, Trials, as_dict, from_dict
from tests.plan.conftest import fault_of, loading

MC = """
question: Which choices matter?
base:
  model: {dim: 16, mixer: {memory: linear, segment: 8, aggregate: grm}}
  train: {lr: 1e-2}
space:
  model.mixer.k: {low: 1, high: 4}
  model.mixer.depth: {low: 1, high: 3, step: 2}
  model:
    mixer:
      aggregate: [grm, ssc, none]
      memory: [linear, titans]
  train.lr: {low: 1e-3, high: 1E-1, log: true}
  train.clip: {low: 0.5, high: 1.5, step: 0.25}
when:
  model.mixer.k: {model.mixer.aggregate: ssc}
  model.mixer.depth: {model.mixer.memory: [titans, dla]}
"""


@pytest.fixture
def space(tmp_path: Path):
    return loading(load_space, tmp_path / "s.yaml")


@pytest.fixture
def fault(space, tmp_path: Path):
    return fault_of(space, tmp_path)


def test_every_kind_of_axis(space) -> None:
    found = space(MC)
    assert [axis.spec for axis in found.axes] == [
        SpaceAxis("model.mixer.aggregate", "choice", ("grm", "ssc", "none")),
        SpaceAxis("model.mixer.k", "int", (), 1, 4, when="{model.mixer.aggregate: ssc}"),
        SpaceAxis("model.mixer.memory", "choice", ("linear", "titans")),
        SpaceAxis("model.mixer.depth", "int", (), 1, 3, step=2, when="{model.mixer.memory: [titans, dla]}"),
        SpaceAxis("train.lr", "float", (), 0.001, 0.1, log=True),
        SpaceAxis("train.clip", "float", (), 0.5, 1.5, step=0.25),
    ]
    assert (found.question, found.sampler, found.pruner, found.seeds) == ("Which choices matter?", "tpe", "none", (0,))
    assert found.objectives == (Objective("valid.accuracy", "maximize"),)
    assert (found.notes, found.warnings) == ((), ())
    assert dict(found.start) == {
        "model.mixer.aggregate": "grm", "model.mixer.memory": "linear", "train.lr": 0.01, "train.clip": 1.0,
    }  # fmt: skip
    assert found.base_point().run_ids == found.point(found.start).run_ids


@pytest.mark.parametrize(
    ("word", "mapping", "axis"),
    [
        ("titans", "{memory: titans}", "model.mixer.segment: [4, 8]"),
        ("transformer++", "{name: attention, rotary: true, conv: 0}", "model.mixer.window: [4, 8]"),
    ],
)
def test_a_base_names_its_mixer_by_a_word(space, word: str, mapping: str, axis: str) -> None:
    """Every point of the space is its own run, and the one that the mapping gives."""
    named, whole = (space(f"base: {{model: {{mixer: {mixer}}}}}\nspace: {{{axis}}}") for mixer in (word, mapping))
    ids = [[each.point(point).run_ids for point in each.listed()] for each in (named, whole)]
    assert ids[0] == ids[1]
    assert len(ids[0]) == len(set(ids[0])) == 2
    assert named.start == whole.start


def test_a_key_under_a_condition_is_there_where_it_holds(space) -> None:
    found = space(MC)
    aggregate, k, memory, depth = found.axes[:4]
    assert found.asked(aggregate, {})
    assert found.asked(k, {aggregate.path: "ssc"})
    assert not found.asked(k, {aggregate.path: "grm"})
    assert found.asked(depth, {memory.path: "titans"})
    run = found.point({aggregate.path: "ssc", k.path: 3, memory.path: "titans", depth.path: 3}).runs[0]
    mixer: Any = run.model.mixer
    assert (mixer.aggregate, mixer.k, mixer.memory, mixer.depth) == ("ssc", 3, "titans", 3)


def test_what_changes_nothing_is_inert_and_makes_the_same_runs(space) -> None:
    found = space("space: {model.mixer.gate: [context, none], model.mixer.connector: [own, shared]}")
    points = [found.point({"model.mixer.gate": "none", "model.mixer.connector": word}) for word in ("own", "shared")]
    assert points[0].run_ids == points[1].run_ids
    assert {point.inert for point in points} == {("model.mixer.connector",)}
    assert len(found.listed()) == 3
    assert found.size() == 4


def test_lists_and_mappings_are_choices_by_their_text(space) -> None:
    found = space(
        """
        space:
          model.mixer: [{name: memory, gate: input}, {name: attention, window: 8}]
          model.pattern: [[mixer, attention], [attention]]
          train.stop_at: [null, 0.9]
        """
    )
    texts = ("{name: memory, gate: input}", "{name: attention, window: 8}")
    values = {axis.path: axis.spec.values for axis in found.axes}
    assert values == {
        "model.mixer": texts, "model.pattern": ("[mixer, attention]", "[attention]"), "train.stop_at": (None, 0.9),
    }  # fmt: skip
    assert found.point({"model.mixer": texts[1]}).runs[0].model.mixer.name == "attention"
    assert (
        "trial 0 is the base except for model.mixer, because this axis does not contain the base's value" in found.notes
    )


def test_equal_values_are_one_and_noted(space) -> None:
    found = space("space: {train.lr: [1e-3, 0.001, 1e-2]}")
    assert found.axes[0].spec.values == (0.001, 0.01)
    assert found.notes[0] == "space: train.lr lists 0.001 twice; it runs once"


def test_seeds_and_overrides(space) -> None:
    found = space(f"{MC}repeats: 2\n", "train.steps=7", seed=3)
    assert found.seeds == (3, 4)
    assert {run.train.steps for run in found.point({}).runs} == {7}
    assert space(f"{MC}repeats: 2\n", "seed=4", repeats=1).seeds == (4,)


def test_a_point_that_breaks_a_rule_says_which(space) -> None:
    axes = "{model.mixer.gate: [context, none], model.mixer.aggregate: [grm, soup]}"
    found = space(f"base: {{model.mixer.memory: dla}}\nspace: {axes}")
    with pytest.raises(ConfigError, match="soup sums the weight matrices of memories, and with gate none"):
        found.point({"model.mixer.gate": "none", "model.mixer.aggregate": "soup"})
    assert len(found.listed()) == 3


def test_excluded_points_are_refused_and_not_listed(space) -> None:
    found = space("space: {model.dim: [8, 16], train.lr: [1e-3, 1e-2]}\nexclude: [{model.dim: 8, train.lr: 1e-3}]")
    with pytest.raises(ConfigError, match="exclude: every cell is excluded; leave at least one"):
        found.point({"model.dim": 8, "train.lr": 0.001})
    assert len(found.listed()) == 3


def test_what_two_searches_differ_in(space) -> None:
    first = space(MC).describe()
    assert changes(first, space(MC).describe()) == []
    assert changes(first, space(MC, sampler="random", pruner="median").describe()) == []
    other = space(MC.replace("[linear, titans]", "[linear]").replace("dim: 16", "dim: 8"), repeats=2).describe()
    assert changes(first, other) == [
        "seeds was [0], now it is [0, 1]",
        "space model.mixer.memory was [linear, titans], now it is [linear]",
        "base model.dim was 16, now it is 8",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "s.yaml: the file is empty; the keys of a space are question, base, space"),
        ("- a", "s.yaml: the file must be a mapping, got [a]"),
        ("space: {}", "s.yaml:1: space: this block is empty"),
        ("base: {}", "space: this block is empty; give it a key to search"),
        ("spaces: {train.lr: [1]}", "s.yaml:1: spaces: unknown key; did you mean space?"),
        (
            "grid: {train.lr: [1]}",
            "s.yaml:1: grid: unknown key; it is for mclab ablate --grid; a search has the key space",
        ),
        ("seeds: 0..3", "s.yaml:1: seeds: unknown key; write repeats: N, and seed under base"),
        ("train.lr: [1]", "s.yaml:1: train.lr: unknown key; it belongs under base, or under space to be searched"),
        ("space: [1]", "s.yaml:1: space: must be a mapping of keys to values, got [1]"),
        ("space: {train.lrr: [1]}", "s.yaml:1: space: train.lrr: unknown key; did you mean train.lr?"),
        ("space: {train.lrr: {low: 1, high: 2}}", "s.yaml:1: space: train.lrr: unknown key; did you mean train.lr?"),
        (
            "space:\n  train.lr: 0.1",
            "s.yaml:2: space: train.lr: must be a list of values or {low: ..., high: ...}, got 0.1",
        ),
        ("space:\n  train.lr: []", "s.yaml:2: space: train.lr: must have at least one value, got []"),
        ("space:\n  train.lr: {low: 1}", "s.yaml:2: space: train.lr: high is missing"),
        ("space:\n  train.lr: {low: 1, high: 2, lgo: true}", "space.train.lr.lgo: unknown key; did you mean log?"),
        (
            "space: {train.lr: [1]}\npruner: median\nrepeats: 3",
            "pruner: median can judge only one run, but a trial has 3 seeds; take none, or repeats 1",
        ),
        ("space:\n  train.lr: {low: 1, hgih: 2}", "s.yaml:2: space.train.lr.hgih: unknown key; did you mean high?"),
        (
            "space:\n  train.lr:\n    low: 2\n    high: 1",
            "s.yaml:3: space: train.lr: low 2.0 is above high 1.0; swap them",
        ),
        (
            "space:\n  train.lr:\n    low: -1\n    high: 1",
            "s.yaml:3: space: train.lr: must be float > 0, <= 1e+30, got -1",
        ),
        ("space: {train.weight_decay: {low: 0, high: 1, log: true}}", "low 0.0 has no logarithm; take one above 0"),
        ("space: {train.lr: {low: 1, high: 2, log: yes}}", 'log: must be true or false, got "yes"'),
        ("space: {model.dim: {low: 8, high: 16, log: true, step: 4}}", "a range cannot have both log and step"),
        (
            "space: {model.dim: {low: 8, high: 30, step: 8}}",
            "high 30 cannot be reached from 8 in steps of 8; take 24 or 32",
        ),
        ("space: {model.dim: {low: 8, high: 16, step: 0.5}}", "step: must be a whole number above 0, got 0.5"),
        ("space: {model.dim: {low: 8.5, high: 16}}", "model.dim: must be int >= 1, <= 65536, got 8.5"),
        ("space: {model.mixer.gate: {low: a, high: b}}", "model.mixer.gate: must be context | input | none"),
        (
            "space:\n  model.mixer.gate: [context, inptu]",
            'must be input | context | none, got "inptu"; did you mean input?',
        ),
        (
            "space: {task.length: [16, 32]}",
            "s.yaml:1: space: task.length: this key changes the test, so that the easiest test would win",
        ),
        ("space: {eval.every: [16, 32]}", "changes the test"),
        (
            "space: {seed: [0, 1]}",
            "s.yaml:1: space: seed: the seed is not an axis; write repeats: N, and seed under base",
        ),
        ("space: {train.lr: [1, 2], train.lr: [3]}", "given twice, on line 1"),
        (
            "space: {model.mixer: [{gate: input}], model.mixer.gate: [context]}",
            "model.mixer.gate: both model.mixer and",
        ),
        ("space: {train.lr: [1]}\nobjective: test.accuracy", "s.yaml:2: objective: must be one of valid.accuracy"),
        ("space: {train.lr: [1]}\nobjective: valid.acuracy", "did you mean valid.accuracy?"),
        (
            "space: {train.lr: [1]}\nobjective: params",
            "the first metric must be valid.accuracy or valid.loss, got params",
        ),
        ("space: {train.lr: [1]}\nobjective: [valid.loss, valid.accuracy]", "the second metric must be a cost"),
        ("space: {train.lr: [1]}\nobjective: []", "objective: must be one metric or two, got []"),
        ("space: {train.lr: [1]}\nrepeats: 0", "s.yaml:2: repeats: must be a number of seeds from 1 to 100, got 0"),
        (
            "space: {train.lr: [1]}\nsampler: tpr",
            's.yaml:2: sampler: must be one of tpe, random, gp, cmaes, qmc, grid, got "tpr"',
        ),
        ("space: {train.lr: [1]}\nquestion: 3", "question: must be text, got 3"),
        ("space: {train.lr: [1]}\nbase: {model.dim: 3, model.heads: 2}", "model.heads"),
        ("space: {train.lr: [1]}\nbase:\n  model.dmi: 3", "s.yaml:3: model.dmi: unknown key"),
        (
            "space: {train.lr: [1]}\nbase:\n  model.mixer: titans\n  model.mixer.memory: dla",
            "s.yaml:4: model.mixer.memory: mixer titans sets this key to titans; for another value write a mapping",
        ),
        (
            "space: {train.lr: [1]}\nwhen: {train.lr: {train.lr: 1}}",
            "the condition of this key depends on the key itself",
        ),
        ("space: {train.lr: {low: 1, high: 2}}\nsampler: grid", "grid needs a list of values or a step for train.lr"),
    ],
)
def test_a_fault_is_a_line_with_its_place(fault, text: str, said: str) -> None:
    found = fault(text)
    assert said in found
    assert found.count("\n") == 0


def test_an_override_of_an_axis_is_refused(fault) -> None:
    assert fault(MC, "train.lr=0.1") == (
        "train.lr=0.1: train.lr: this key cannot be set here, because s.yaml:13 varies train.lr; edit the file instead"
    )


def test_a_condition_that_nothing_varies_is_warned_of(space) -> None:
    found = space("space: {train.lr: [1e-3, 1e-2]}\nwhen: {model.mixer.k: {model.mixer.aggregate: ssc}}")
    assert found.warnings == ("when: model.mixer.k is not varied here, so its condition changes nothing",)


def test_a_number_on_its_step_is_the_one_an_author_writes(space) -> None:
    """0.1 + 2 * 0.1 is not 0.3, and would be another run."""
    found = space("space: {train.clip: {low: 0.1, high: 0.5, step: 0.1}}")
    assert found.axes[0].listed() == (0.1, 0.2, 0.3, 0.4, 0.5)
    ids = [found.point({"train.clip": value}).run_ids for value in (0.3, 0.1 + 2 * 0.1)]
    assert ids[0] == ids[1]


def test_a_condition_that_never_holds_and_rules_that_leave_nothing_are_warned_of(space) -> None:
    text = "space: {model.mixer.k: [1, 2], model.mixer.aggregate: [grm, none]}"
    found = space(f"{text}\nwhen: {{model.mixer.k: {{model.mixer.aggregate: ssc}}}}")
    assert found.warnings == ("when: the condition of model.mixer.k holds at no point of the space",)
    found = space("space: {train.lr: [1e-3, 1e-2]}\nexclude: [{train.lr: [1e-3, 1e-2]}]")
    assert found.warnings == ("the rules between keys allow no point of the space",)


def test_a_pruner_that_has_nothing_to_look_at_is_warned_of(space) -> None:
    text = "space: {train.lr: [1e-3, 1e-2]}\npruner: median\nbase: {train.steps: 100}"
    assert space(text).warnings == ()
    line = (
        "pruner: nothing is pruned, because the first evaluation on valid is at step 100 (eval.every) of train.steps "
        "100"
    )
    assert space(text, "eval.every=100").warnings == (line,)
    assert space(text.replace("median", "none"), "eval.every=100").warnings == ()


def trial(number: int, *values: float, ids: tuple[str, ...] = (), **more: Any) -> Trial:
    return Trial(number, "done", {"train.lr": number}, values, run_ids=ids or (str(number),), **more)


def test_trials_as_plain_data_and_back() -> None:
    axes = (SpaceAxis("train.lr", "choice", (0, None, "a", True)), SpaceAxis("model.dim", "int", (), 8, 16, step=8))
    failed = Trial(3, "failed", {"train.lr": None}, error="x", retry_of=1)
    found = Trials(
        "s", None, axes, (Objective("valid.accuracy", "maximize"),), (0,), 4, (trial(0, 0.5), failed), {"a": {"b": 1.0}}
    )
    assert from_dict(as_dict(found)) == found
    with pytest.raises(ConfigError, match=r"x\.json: these are not trials of mclab"):
        from_dict({}, "x.json")


def test_the_best_and_the_front() -> None:
    goals = (Objective("valid.accuracy", "maximize"), Objective("state_floats", "minimize"))
    rows = (
        trial(0, 0.5, 100.0), trial(1, 0.9, 200.0), trial(2, 0.4, 50.0), trial(3, 0.4, 60.0), trial(4, 0.9, 200.0),
        trial(5, 0.9, 100.0, ids=("0",)), Trial(6, "diverged", {}),
    )  # fmt: skip
    found = Trials("s", None, (), goals, (0,), 7, rows)
    assert [each.number for each in found.done] == [0, 1, 2, 3, 4]  # the sixth repeats the first's runs
    assert [each.number for each in found.best()] == [1, 4, 0, 2, 3]
    assert [each.number for each in found.front()] == [2, 0, 1, 4]

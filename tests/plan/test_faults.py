"""What a grid may get wrong: one line, with file and line, the key, and the nearest right thing; never a traceback."""

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.grid import KEYS, plan_from
from tests.plan.conftest import Fault, Make

ALL = ", ".join(KEYS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            (
                f"g.yaml: the file is empty; the keys of a grid are {ALL}, e.g. grid: {{model.mixer.gate: [context, "
                "none]}"
            ),
        ),
        (
            "# nothing\n",
            (
                f"g.yaml: the file is empty; the keys of a grid are {ALL}, e.g. grid: {{model.mixer.gate: [context, "
                "none]}"
            ),
        ),
        ("- a", f"g.yaml: the file must be a mapping with some of the keys {ALL}, got [a]"),
        ("hello", f'g.yaml: the file must be a mapping with some of the keys {ALL}, got "hello"'),
        ("grid: {}", "g.yaml:1: grid: this block is empty; give it something to vary, or leave it out"),
        ("grid:", "g.yaml:1: grid: this block is empty; give it something to vary, or leave it out"),
        ("zip: {}", "g.yaml:1: zip: this block is empty; give it something to vary, or leave it out"),
        ("runs: []", "g.yaml:1: runs: this block is empty; give it something to vary, or leave it out"),
        ("changes: {}", "g.yaml:1: changes: this block is empty; give it something to vary, or leave it out"),
        ("grid: {model.mixer.gate: []}", "g.yaml:1: grid: model.mixer.gate: must have at least one value, got []"),
        (
            "grid: {model.mixer.gate: none}",
            'g.yaml:1: grid: model.mixer.gate: must be a list of values, got "none"; write [...]',
        ),
        ("grid: [a]", "g.yaml:1: grid: must be a mapping of keys to lists, got [a]"),
        ("zip: 3", "g.yaml:1: zip: must be a mapping of keys to lists, got 3"),
        ("base: 3", "g.yaml:1: base: must be a mapping of keys to values, got 3"),
        ("base: [a]", "g.yaml:1: base: must be a mapping of keys to values, got [a]"),
        ("runs: {a: 3}", "g.yaml:1: runs: must be a list of mappings, got {a: 3}"),
        ("runs:\n- {}\n- 3", "g.yaml:3: runs.1: must be a mapping of keys to values, got 3"),
        ("changes: [a]", "g.yaml:1: changes: must be a mapping of row names to changes, got [a]"),
        ("changes:\n  full: {}\n  x: 3", "g.yaml:3: changes.x: must be a mapping of keys to values, got 3"),
        ("question: [a]", "g.yaml:1: question: must be text, got [a]; put it in quotes"),
        (
            "zip: {task.length: [64, 128], task.pairs: [4]}",
            "g.yaml:1: zip: the lists must have equal lengths, but task.length has 2, task.pairs has 1",
        ),
        (
            "grid: {model.dim: [16]}\nzip: {model.dim: [16]}",
            "g.yaml:2: zip: model.dim: grid varies this key as well; keep one",
        ),
        (
            "grid: {model.dim: [16]}\nchanges:\n  a: {model.dim: 8}",
            "g.yaml:2: changes: model.dim: grid or zip varies this key as well; keep one",
        ),
        (
            "runs: [{}]\nchanges: {a: {}}",
            "g.yaml:2: runs and changes cannot be combined; keep one",
        ),
    ],
)
def test_shapes(fault: Fault, text: str, message: str):
    assert fault(text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gird: {model.dim: [16]}", "g.yaml:1: gird: unknown key; did you mean grid?"),
        ("base: {}\nseed: 3", "g.yaml:2: seed: unknown key; did you mean seeds?"),
        ("train.lr: 3", "g.yaml:1: train.lr: unknown key; it belongs under base"),
        ("space: {train.lr: [1.0]}", "g.yaml:1: space: unknown key; it is for mclab sweep --space"),
        ("model: {dim: 3}", "g.yaml:1: model: unknown key; it belongs under base"),
        ("x-common: 3", f"g.yaml:1: x-common: unknown key; the keys of a grid are {ALL}"),
        (
            "base:\n  model:\n    mixer: {seqment_size: 32}",
            "g.yaml:3: model.mixer.seqment_size: unknown key; did you mean model.mixer.segment?",
        ),
        ("base:\n  modle: {dim: 3}", "g.yaml:2: modle: unknown key; did you mean model?"),
        ("base: {gate: none}", "g.yaml:1: gate: unknown key; did you mean model.mixer.gate?"),
        (
            "grid:\n  model.dim: [16]\n  model.mixer.gaet: [none]",
            "g.yaml:3: grid: model.mixer.gaet: unknown key; did you mean model.mixer.gate?",
        ),
        (
            "grid:\n  model:\n    gate: [none]",
            "g.yaml:3: grid: model.gate: unknown key; did you mean model.mixer.gate?",
        ),
        ("zip: {lr: [1.0]}", "g.yaml:1: zip: lr: unknown key; did you mean train.lr?"),
        (
            "runs:\n- {}\n- {train.step: 3}",
            "g.yaml:3: runs.1: train.step: unknown key; did you mean train.steps?",
        ),
        (
            "changes:\n  a: {}\n  b: {model: {dmi: 3}}",
            "g.yaml:3: changes.b: model.dmi: unknown key; did you mean model.dim?",
        ),
        (
            "grid: {model.dim: [16]}\nexclude:\n- {model.dim: 3}\n- {dim: 3}",
            "g.yaml:4: exclude.1: dim: unknown key; did you mean model.dim?",
        ),
        (
            "grid: {model.dim: [16]}\nwhen: {model.mixer.kk: {model.mixer.aggregate: ssc}}",
            "g.yaml:2: when: model.mixer.kk: unknown key; did you mean model.mixer.k?",
        ),
        (
            "grid: {model.dim: [16]}\nwhen: {model.dim: {model.mixer.agregate: ssc}}",
            "g.yaml:2: when.model.dim: model.mixer.agregate: unknown key; did you mean model.mixer.aggregate?",
        ),
        ("select: {over: {train.lrr: [1.0]}}", "g.yaml:1: select.over: train.lrr: unknown key; did you mean train.lr?"),
        ("select:\n  ovr: {train.lr: [1.0]}", "g.yaml:2: select.ovr: unknown key; did you mean over?"),
    ],
)
def test_a_typo_anywhere_names_line_and_nearest_key(fault: Fault, text: str, message: str):
    assert fault(text) == message


def test_words_that_yaml_1_1_takes_for_booleans_are_refused_as_what_they_are(fault: Fault):
    lines = fault('grid:\n  model.mixer.gate:\n  - off\n  - none\n  - null\n  - "none"\n  - no\n  - false').splitlines()
    assert [line.partition(" (cell")[0] for line in lines] == [
        f"g.yaml:{number}: model.mixer.gate: must be none | context | input, got {word}; did you mean none?"
        for number, word in ((3, '"off"'), (5, "null"), (7, '"no"'), (8, "false"))
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "base:\n  train: {lr: fast}",
            'g.yaml:2: train.lr: must be float > 0, <= 1e+30, got "fast"',
        ),
        (
            "base:\n  train.steps: 1e3\ngrid: {model.dim: [16, 32]}",
            "g.yaml:2: train.steps: must be int >= 1, <= 100000000, got 1000.0; take 1000",
        ),
        (
            "grid:\n  train.lr:\n  - 1e-3\n  - 1e-3x",
            'g.yaml:4: train.lr: must be float > 0, <= 1e+30, got "1e-3x" (cell lr=1e-3x)',
        ),
        (
            "changes:\n  a: {}\n  b: {model.mixer.gate: nothing}",
            'g.yaml:3: model.mixer.gate: must be context | input | none, got "nothing" (cell b)',
        ),
        (
            "grid: {model.mixer: [3]}",
            "g.yaml:1: model.mixer: must be a mapping, got 3; take {name: memory}",
        ),
        (
            "base: {model.mixer: titens}\ngrid: {model.mixer: [titans, {name: tranformer++}]}",
            'g.yaml:2: model.mixer.name: must be memory | attention | log_linear | conv | module, got "tranformer++" '
            "(cell mixer={name: tranformer++})",
        ),
        (
            "runs:\n- {}\n- {model.mixer: {name: attention, gate: none}}",
            (
                "g.yaml:3: model.mixer.gate: is a key of mixer memory, but the mixer here is attention; to replace the "
                "mixer as a whole, write model.mixer: {name: attention} (cell mixer={name: attention, gate: none})"
            ),
        ),
        (
            "grid: {model.dim: [16]}\nexclude: [{model.mixer.gate: contxt}]",
            'g.yaml:2: exclude.0: model.mixer.gate: must be context | input | none, got "contxt"; '
            "did you mean context?",
        ),
        (
            "grid: {model.dim: [16]}\nwhen: {model.dim: {model.mixer.aggregate: [ssc, sc]}}",
            "g.yaml:2: when.model.dim: model.mixer.aggregate: must be ssc | none | residual | grm | soup, "
            'got "sc"; did you mean ssc?',
        ),
        ("base: {seed: x}", 'g.yaml:1: seed: must be int >= 0, < 2147483648, got "x"'),
    ],
)
def test_wrong_values(fault: Fault, text: str, message: str):
    assert fault(text) == message


def test_a_typo_in_the_base_shows_even_where_every_row_replaces_it(fault: Fault):
    text = "base: {model.mixer: {gaet: none}}\nruns: [{model.mixer: {name: attention}}]"
    assert fault(text).startswith("g.yaml:1: model.mixer.gaet: unknown key")
    assert fault("base: {train.lrr: 1.0}", "train.lr=1").startswith("g.yaml:1: train.lrr: ")


def test_rules_between_keys_name_the_rule_the_line_and_the_cell(fault: Fault):
    text = "base:\n  model:\n    heads: 4\ngrid: {model.dim: [16, 18, 32, 34]}"
    assert fault(text).splitlines() == [
        "g.yaml:3: model.heads: 4 heads do not divide dim 18; take heads 3 or 6, or dim 16 (cell dim=18)",
        "g.yaml:3: model.heads: 4 heads do not divide dim 34; take heads 2 or 17, or dim 32 (cell dim=34)",
    ]


def test_a_fault_of_several_cells_is_one_line(fault: Fault):
    text = "grid: {model.heads: [1, 3], train.lr: [1.0, 2.0]}"
    assert fault(text) == (
        "g.yaml:1: model.heads: 3 heads do not divide dim 32; take heads 2 or 4, or dim 33 "
        "(cell heads=3, lr=1.0 and 1 more)"
    )


def test_many_faults_are_cut(fault: Fault):
    lines = fault(f"grid: {{model.mixer.gate: {[f'g{n}' for n in range(20)]}}}").splitlines()
    assert len(lines) == 9
    assert lines[-1] == "... and 12 more"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exclude: [{model.dim: 32}]", "g.yaml:1: exclude: every cell is excluded; leave at least one"),
        ("exclude: [{}]", "g.yaml:1: exclude.0: must be a mapping of keys to values, got {}"),
        ("exclude: {model.dim: 16}", "g.yaml:1: exclude: must be a list of mappings, got {model.dim: 16}"),
        (
            "exclude: [{model.mixer: attention}]",
            (
                "g.yaml:1: exclude.0: model.mixer: this is not a key but a mapping of keys; name one key in it, e.g. "
                "model.mixer.name"
            ),
        ),
        ("when: [a]", "g.yaml:1: when: must be a mapping of keys to conditions, got [a]"),
        ("when: {model.dim: 3}", "g.yaml:1: when.model.dim: must be a mapping of keys to values, got 3"),
        (
            "select: {over: {train.lr: [1.0, 2.0]}}\nexclude: [{train.lr: 1.0}]",
            "g.yaml:2: exclude.0: train.lr: every cell chooses this key (select.over), so that it cannot exclude cells",
        ),
    ],
)
def test_conditions(fault: Fault, text: str, message: str):
    assert fault(text) == message


def test_a_product_beyond_reading_is_refused_at_once(fault: Fault):
    axes = ", ".join(
        f"{key}: {list(range(1, 101))}" for key in ("train.steps", "train.batch", "eval.every", "eval.test")
    )
    assert fault(f"grid: {{{axes}}}") == "g.yaml:1: grid: there would be 100000000 cells, but at most 20000 are allowed"


def test_the_same_key_nested_and_dotted_is_given_twice(fault: Fault):
    assert fault("base:\n  train: {lr: 1e-3}\n  train.lr: 3.0") == (
        "g.yaml:3: base.train.lr: this key is given twice, on lines 2 and 3; keep one"
    )
    with pytest.raises(
        ConfigError, match=r"^x: base: train\.lr: this key is given twice, nested and dotted; keep one$"
    ):
        plan_from({"base": {"train": {"lr": 1.0}, "train.lr": 2.0}}, "x")


def test_a_key_twice_in_any_part_trains_nothing(fault: Fault):
    for text in (
        "grid:\n  model.mixer.gate: [none]\n  model.mixer.gate: [context]",
        "base: {}\nbase:\n  model.dim: 3",
        "select:\n  over:\n    train.lr: [1.0]\n    train.lr: [2.0]",
        "changes:\n  a: {}\n  a: {model.dim: 3}",
    ):
        assert "given twice, on line" in fault(text)


@pytest.mark.parametrize("part", [*KEYS])
@pytest.mark.parametrize("value", ["3", "x", "[a]", "{a: b}", "{a: [b]}", "[{a: b}]", "null", "true", "[[]]", "{: }"])
def test_whatever_stands_there_it_is_a_plan_or_a_short_line(plan: Make, part: str, value: str):
    message = "fine"
    try:
        plan(f"{part}: {value}")
    except ConfigError as error:
        message = str(error)
    assert 1 <= len(message.splitlines()) <= 2
    assert len(message) < 500

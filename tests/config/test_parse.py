"""One line for each fault: path, what is wrong, the value, the nearest right thing."""

from typing import Any

import pytest

from mclab.config.model import AttentionMixer
from mclab.config.parse import check_path, check_values, parse_run, quoted, typed, unknown
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError


def faults(data: dict[str, Any], where: Any = "") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_run(data, where)
    return str(caught.value).splitlines()


def mixer(**keys: Any) -> dict[str, Any]:
    return {"model": {"mixer": keys}}


def test_nothing_given_is_the_default_run():
    assert parse_run({}) == RunConfig()


def test_a_partial_mixer_is_filled_up():
    run = parse_run(mixer(name="attention"))
    assert isinstance(run.model.mixer, AttentionMixer)
    assert run.model.mixer.window is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (mixer(gaet="none"), "model.mixer.gaet: unknown key; did you mean model.mixer.gate?"),
        (mixer(seqment_size=32), "model.mixer.seqment_size: unknown key; did you mean model.mixer.segment?"),
        ({"model": {"gate": "none"}}, "model.gate: unknown key; did you mean model.mixer.gate?"),
        ({"mixer": {}}, "mixer: unknown key; did you mean model.mixer?"),
        ({"modle": {}}, "modle: unknown key; did you mean model?"),
        ({"lr": 1.0}, "lr: unknown key; did you mean train.lr?"),
        ({"train": {"dim": 3}}, "train.dim: unknown key; did you mean model.dim?"),
        ({"train": {"learning_rate": 3}}, "train.learning_rate: unknown key; did you mean train.lr?"),
        ({"train": {"batch_size": 3}}, "train.batch_size: unknown key; did you mean train.batch?"),
        ({"task": {"naem": "mqar"}}, "task.naem: unknown key; did you mean task.name?"),
        (
            {"eval": {"qqq": 1}},
            (
                "eval.qqq: unknown key; the keys of eval are every, valid, test, task, post_training, post_segment, "
                "post_mix"
            ),
        ),
    ],
)
def test_unknown_keys_name_the_nearest(data: dict[str, Any], message: str):
    assert faults(data) == [message]


def test_a_key_of_another_mixer():
    assert faults(mixer(name="attention", gate="none")) == [
        "model.mixer.gate: is a key of mixer memory, but the mixer here is attention; "
        "to replace the mixer as a whole, write model.mixer: {name: attention}"
    ]
    assert faults(mixer(rotary=True)) == [
        "model.mixer.rotary: is a key of mixer attention, but the mixer here is memory; add name: attention"
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (mixer(gate="contxt"), 'model.mixer.gate: must be context | input | none, got "contxt"; did you mean context?'),
        (mixer(gate="imput"), 'model.mixer.gate: must be input | context | none, got "imput"; did you mean input?'),
        (mixer(gate="off"), 'model.mixer.gate: must be none | context | input, got "off"; did you mean none?'),
        (mixer(gate=None), "model.mixer.gate: must be none | context | input, got null; did you mean none?"),
        (mixer(gate=False), "model.mixer.gate: must be none | context | input, got false; did you mean none?"),
        (mixer(gate=[1]), "model.mixer.gate: must be context | input | none, got [1]"),
        (
            mixer(name="attn"),
            "model.mixer.name: must be attention | memory | log_linear | conv | module, "
            'got "attn"; did you mean attention?',
        ),
        (mixer(name=3), "model.mixer.name: must be memory | attention | log_linear | conv | module, got 3"),
        (
            {"task": {"name": "mqra"}},
            'task.name: must be mqar | ar | niah | text | facts | module, got "mqra"; did you mean mqar?',
        ),
        ({"model": 3}, "model: must be a mapping, got 3"),
        ({"model": {"mixer": None}}, "model.mixer: must be a mapping, got null; take {name: memory}"),
        ({"model": {"mixer": 3}}, "model.mixer: must be a mapping, got 3; take {name: memory}"),
        ({"model": {"mixer": "atention"}}, "model.mixer: 'atention' is not a known mixer; did you mean attention?"),
        ({"train": {"lr": "2e-5"}}, 'train.lr: must be float > 0, <= 1e+30, got "2e-5"; take 2e-05'),
        ({"train": {"lr": True}}, "train.lr: must be float > 0, <= 1e+30, got true"),
        ({"train": {"lr": float("nan")}}, "train.lr: must be float > 0, <= 1e+30, got nan"),
        ({"train": {"clip": float("inf")}}, "train.clip: must be float > 0, <= 1e+30, got inf"),
        ({"train": {"lr": 0}}, "train.lr: must be float > 0, <= 1e+30, got 0"),
        ({"train": {"warmup": 2}}, "train.warmup: must be float >= 0, <= 1, got 2; take 1"),
        ({"train": {"steps": 1e3}}, "train.steps: must be int >= 1, <= 100000000, got 1000.0; take 1000"),
        ({"train": {"steps": 30.5}}, "train.steps: must be int >= 1, <= 100000000, got 30.5; take 30 or 31"),
        ({"train": {"steps": 0.5}}, "train.steps: must be int >= 1, <= 100000000, got 0.5; take 1"),
        ({"train": {"steps": -0.5}}, "train.steps: must be int >= 1, <= 100000000, got -0.5; take 1"),
        ({"train": {"steps": [3]}}, "train.steps: must be int >= 1, <= 100000000, got [3]; take 3"),
        ({"train": {"steps": True}}, "train.steps: must be int >= 1, <= 100000000, got true"),
        (mixer(segment=0), "model.mixer.segment: must be int >= 1, <= 1048576, got 0; take 1"),
        (mixer(qk_norm="yes"), 'model.mixer.qk_norm: must be true | false, got "yes"; take true'),
        (mixer(qk_norm=0), "model.mixer.qk_norm: must be true | false, got 0; take false"),
        (
            mixer(name="attention", window="none"),
            'model.mixer.window: must be int >= 1, <= 1048576 or null, got "none"; take null',
        ),
        ({"seed": -1}, "seed: must be int >= 0, < 2147483648, got -1; take 0"),
        ({"task": {"pairs": []}}, "task.pairs: must have at least one value, got []"),
        ({"task": {"pairs": [4, 4]}}, "task.pairs: 4 is listed twice, got [4, 4]"),
        ({"task": {"pairs": None}}, "task.pairs: must be a whole number or a list of them, got null"),
    ],
)
def test_wrong_values(data: dict[str, Any], message: str):
    assert faults(data) == [message]


@pytest.mark.parametrize(
    ("data", "path", "fix"),
    [
        ({"model": {"heads": 3}}, "model.heads", {"model": {"heads": 3, "dim": 33}}),
        ({"task": {"length": 65}}, "task.length", {"task": {"length": 66}}),
        ({"task": {"pairs": 32}}, "task.pairs", {"task": {"pairs": 16}}),
        ({"task": {"vocab": 16, "pairs": 8}}, "task.pairs", {"task": {"vocab": 18, "pairs": 8}}),
        ({"task": {"distractors": True}}, "task.distractors", {"task": {"distractors": True, "filler": "random"}}),
        ({"task": {"length": 8, "pairs": 1}}, "eval.test", {"task": {"length": 8, "pairs": 1}, "eval": {"test": 744}}),
    ],
)
def test_rules_between_keys_have_the_whole_path_and_their_fix_works(
    data: dict[str, Any], path: str, fix: dict[str, Any]
):
    (line,) = faults(data)
    assert line.startswith(f"{path}: ")
    parse_run(fix)


@pytest.mark.parametrize(
    ("dim", "heads", "ways"),
    [
        (16, 3, "heads 2 or 4, or dim 15"),
        (16, 20, "heads 16, or dim 20"),
        (17, 2, "heads 1 or 17, or dim 16"),
        (65521, 4096, "dim 65536"),
    ],
)
def test_heads_that_do_not_divide_have_dividing_neighbours(dim: int, heads: int, ways: str):
    (line,) = faults({"model": {"dim": dim, "heads": heads}})
    assert line == f"model.heads: {heads} heads do not divide dim {dim}; take {ways}"


def test_several_faults_are_a_line_each():
    data = {"train": {"lr": 0, "stesp": 3}, "model": {"mixer": {"gate": "x"}}}
    assert [line.partition(":")[0] for line in faults(data)] == ["model.mixer.gate", "train.lr", "train.stesp"]


def test_no_union_tag_stands_in_a_path():
    for name in ("memory", "attention"):
        (line,) = faults(mixer(name=name, zzz=1))
        assert line.startswith("model.mixer.zzz: ")


def test_where_is_a_prefix_or_gives_one_for_a_path():
    assert faults({"seed": -1}, "g.yaml")[0].startswith("g.yaml: seed: ")
    assert faults({"seed": -1}, lambda path: f"g.yaml:{len(path)}")[0].startswith("g.yaml:4: seed: ")


def test_check_values_leaves_rules_between_keys_for_later():
    check_values({"model": {"heads": 3}, "task": {"pairs": 64}})
    with pytest.raises(ConfigError, match=r"^train\.lr: "):
        check_values({"model": {"heads": 3}, "train": {"lr": 0}})


def test_check_path():
    for path in ("seed", "train.lr", "model.mixer", "model.mixer.window", "task.name", "model"):
        check_path(path)
    for path in ("", "gate", "model.mixer.", "model..dim", "train.lr.x"):
        with pytest.raises(ConfigError):
            check_path(path, "here")


@pytest.mark.parametrize(
    ("path", "value", "result"),
    [
        ("train.lr", 1, 1.0),
        ("task.pairs", [16, 4], (4, 16)),
        ("task.pairs", 4, (4,)),
        ("model.mixer.window", None, None),
        ("model.mixer.name", "attention", "attention"),
        ("model.mixer.qk_norm", False, False),
    ],
)
def test_typed(path: str, value: Any, result: Any):
    found = typed(path, value)
    assert found == result
    assert type(found) is type(result)


def test_typed_refuses_as_a_run_does():
    with pytest.raises(ConfigError, match=r"^x: model\.mixer\.gate: must be none \| "):
        typed("model.mixer.gate", "no", "x")


def test_unknown_falls_back_to_the_list():
    assert unknown("zzzzzz").startswith("unknown key; the keys of a run are seed, task, model")


def test_messages_stay_on_one_line_and_short():
    assert quoted("a\nb") == '"a b"'
    assert len(quoted("x" * 1000)) == 60
    (line,) = faults({"task": {"vocab": "4\n" * 100}})
    assert "\n" not in line

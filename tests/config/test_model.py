"""Layer patterns, the mixers' keys, and what of them a run's id holds."""

from typing import Any

import pytest

from mclab.config.ids import canonical, inert, run_id, science
from mclab.config.model import RULES
from mclab.config.params import parameters, rough_parameters, state_floats
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.config.warnings import warnings_of

FORMS = ", ".join(("mixer, attention, attention/W, log_linear, conv, conv/K, transformer++, transformer++/W", *RULES))
OWN = {"name": "module", "module": "my.Mixer"}


def of(**model: Any) -> RunConfig:
    return parse_run({"model": model})


def fault(**model: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        of(**model)
    return str(caught.value)


def words(run: RunConfig) -> list[str]:
    return [mixer.name for mixer in run.model.mixers]


def test_a_pattern_is_cycled_over_the_layers() -> None:
    assert words(of()) == ["memory", "memory"]
    assert words(of(layers=5, pattern=["conv/3", "mixer"])) == ["conv", "memory", "conv", "memory", "conv"]
    windows = of(layers=3, pattern=["attention", "attention/16", "mixer"], mixer=OWN).model.mixers
    assert [getattr(mixer, "window", "none") for mixer in windows] == [None, 16, "none"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"pattern": None}, {}),
        ({"pattern": []}, {}),
        ({"pattern": "mixer"}, {}),
        ({"pattern": ["mixer", "mixer"]}, {}),
        ({"pattern": ["conv", "mixer"]}, {"pattern": ["conv/3", "mixer"]}),
        ({"layers": 4, "pattern": ["conv/3", "mixer"] * 2}, {"layers": 4, "pattern": ["conv/3", "mixer"]}),
        ({"pattern": ["conv/3", "mixer", "attention"]}, {"pattern": ["conv/3", "mixer"]}),
        ({"pattern": ["attention", "mixer"], "mixer": {"name": "attention"}}, {"mixer": {"name": "attention"}}),
        (
            {"pattern": ["conv/5", "mixer"], "mixer": {"name": "conv", "kernel": 5}},
            {"mixer": {"name": "conv", "kernel": 5}},
        ),
        ({"mixer": {"name": "conv"}, "heads": 4, "conv": 0, "position": "rotary"}, {"mixer": {"name": "conv"}}),
        ({"mixer": OWN, "heads": 2}, {"mixer": OWN}),
    ],
)
def test_one_model_one_id(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert run_id(of(**one)) == run_id(of(**other))
    assert canonical(of(**one)) == canonical(of(**other))
    assert canonical(canonical(of(**one))) == canonical(of(**one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"pattern": ["conv/3", "mixer"]}, {}),
        ({"pattern": ["conv/3", "mixer"]}, {"pattern": ["mixer", "conv/3"]}),
        ({"pattern": ["conv/3", "mixer"]}, {"pattern": ["conv/4", "mixer"]}),
        ({"pattern": ["attention/8", "mixer"], "mixer": {"name": "attention"}}, {"mixer": {"name": "attention"}}),
        (
            {"pattern": ["attention", "mixer"], "mixer": {"name": "conv"}, "heads": 2},
            {"pattern": ["attention", "mixer"], "mixer": {"name": "conv"}},
        ),
        ({"mixer": {"name": "conv"}, "position": "learned"}, {"mixer": {"name": "conv"}}),
        ({"mixer": {"name": "conv", "kernel": 4}}, {"mixer": {"name": "conv"}}),
        ({"mixer": {**OWN, "args": {"width": 3}}}, {"mixer": OWN}),
        ({"mixer": {**OWN, "args": {"width": 3}}}, {"mixer": {**OWN, "args": {"width": 4}}}),
        ({"mixer": {**OWN, "version": 2}}, {"mixer": OWN}),
        ({"mixer": {**OWN, "module": "my.Other"}}, {"mixer": OWN}),
    ],
)
def test_other_model_other_id(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert run_id(of(**one)) != run_id(of(**other))


def test_what_queries_and_keys_alone_have_is_inert_without_them() -> None:
    cache = {"eval.post_segment", "eval.post_mix"}
    assert inert(of(mixer={"name": "conv"})) == inert(of(mixer=OWN)) == {"model.heads", "model.conv"} | cache
    assert inert(of(mixer={"name": "conv"}, pattern=["mixer", "attention"])) == cache
    assert inert(of(mixer={"name": "attention"})) == cache
    with pytest.raises(ConfigError, match="rotary needs an even head width"):
        of(dim=5, position="rotary", mixer={"name": "conv"}, pattern=["attention", "mixer"])
    of(dim=5, position="rotary", mixer={"name": "conv"})


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (
            {"pattern": ["conv/3"], "mixer": {}},
            "model.pattern: no layer is named mixer, so that model.mixer would change nothing; "
            "write e.g. [conv/3, mixer], or leave model.mixer out",
        ),
        (
            {"pattern": ["conv/3", "mixer"], "layers": 1, "mixer": "titans"},
            (
                "model.pattern: no layer is named mixer (only names after the last layer are mixer), so that "
                "model.mixer would change nothing; write e.g. [mixer], or leave model.mixer out"
            ),
        ),
        (
            {"pattern": ["conv/0", "mixer"]},
            (
                "model.pattern: 'conv/0' is not a known mixer; the number after conv/ must be a whole number from 1 to "
                "4096, got [conv/0, mixer]"
            ),
        ),
        (
            {"pattern": ["memory"]},
            (
                "model.pattern: 'memory' cannot be in a pattern; write mixer there and set model.mixer: {name: "
                "memory}, got [memory]"
            ),
        ),
        (
            {"pattern": ["atention/8", "mixer"]},
            "model.pattern: 'atention/8' is not a known mixer; did you mean attention?, got [atention/8, mixer]",
        ),
        ({"pattern": ["mixr"]}, "model.pattern: 'mixr' is not a known mixer; did you mean mixer?, got [mixr]"),
        ({"pattern": ["mamba3"]}, "model.pattern: 'mamba3' is not a known mixer; did you mean mamba2?, got [mamba3]"),
        (
            {"pattern": ["titans/4"]},
            "model.pattern: 'titans/4' is not a known mixer; titans takes no number, got [titans/4]",
        ),
        ({"pattern": ["xyz"]}, f"model.pattern: 'xyz' is not a known mixer; the known ones are {FORMS}, got [xyz]"),
        (
            {"pattern": [3]},
            f"model.pattern: must be a list of names, one per layer: {FORMS}, got [3]",
        ),
        ({"mixer": "titan"}, "model.mixer: 'titan' is not a known mixer; did you mean titans?"),
        (
            {"mixer": "attention/x"},
            (
                "model.mixer: 'attention/x' is not a known mixer; the number after attention/ must be a whole number "
                "from 1 to 1048576"
            ),
        ),
        ({"mixer": "module"}, "model.mixer.module: the class is missing; write its dotted path, e.g. my_mixers.Mixer"),
        (
            {"mixer": {"name": "titans", "segment": 4}},
            (
                "model.mixer.name: titans is a memory, not a mixer; write {name: memory, memory: titans}, or mixer: "
                "titans if it has no other keys"
            ),
        ),
        (
            {"mixer": {"name": "transformer++", "conv": 4}},
            "model.mixer.conv: must be 0, because name is transformer++; write name: attention for another value",
        ),
        (
            {"mixer": {"name": "transformer++", "segment": 4}},
            "model.mixer.segment: is a key of mixer memory, but the mixer here is attention; "
            "to replace the mixer as a whole, write model.mixer: {name: attention}",
        ),
        (
            {"dim": 6, "heads": 2, "mixer": "transformer++"},
            "model.mixer.rotary: true needs an even head width, but dim / heads is 3; take dim 8",
        ),
        (
            {"dim": 5, "pattern": ["titans", "transformer++/4"]},
            "model.pattern: transformer++/4 needs an even head width, but dim / heads is 5; take dim 6",
        ),
        (
            {"dim": 5, "pattern": ["retnet", "conv/3"]},
            "model.pattern: retnet needs an even head width, but dim / heads is 5; take dim 6",
        ),
        (
            {"dim": 5, "position": "rotary", "mixer": {"hybrid": "mal"}},
            "model.position: rotary needs an even head width, but dim / heads is 5; take dim 6",
        ),
        (
            {"mixer": {"name": "module"}},
            "model.mixer.module: the class is missing; write its dotted path, e.g. my_mixers.Mixer",
        ),
        (
            {"mixer": {**OWN, "module": "Mixer"}},
            'model.mixer.module: must be the dotted path of a class or function, e.g. my_mixers.Mixer, got "Mixer"',
        ),
        (
            {"mixer": {**OWN, "args": [1]}},
            "model.mixer.args: must be a mapping of arguments, e.g. {width: 16}, got [1]",
        ),
        (
            {"mixer": {**OWN, "args": {"a b": 1}}},
            "model.mixer.args: must be a mapping of arguments, e.g. {width: 16}, got {a b: 1}",
        ),
        (
            {"mixer": {**OWN, "args": {"a": float("nan")}}},
            (
                "model.mixer.args: must hold only numbers, texts, true, false, null, and lists or mappings of these, "
                "got {a: nan}"
            ),
        ),
    ],
)
def test_faults_in_a_line(model: dict[str, Any], line: str) -> None:
    assert fault(**model) == line


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ({"pattern": ["conv/3", "mixer"]}, None),
        (
            {"pattern": ["mixer", "conv/3", "attention"]},
            "model.pattern: the pattern has 3 names for 2 layers, so that attention is not used",
        ),
        (
            {"pattern": ["attention/64", "mixer"]},
            (
                "model.pattern: the window of attention/64 is not below task.length 64, so that it is the same as "
                "attention alone"
            ),
        ),
        (
            {"position": "rotary", "mixer": OWN},
            "model.position: rotary changes nothing here, because no layer has queries and keys",
        ),
        (
            {"position": "rotary", "mixer": {"memory": "retnet"}},
            "model.position: rotary changes nothing here, because retnet rotates its queries and keys in any case",
        ),
        ({"position": "rotary", "mixer": {"memory": "retnet"}, "pattern": ["attention", "mixer"]}, None),
        ({"position": "rotary", "mixer": {"memory": "retnet", "hybrid": "mal"}}, None),
        (
            {"position": "rotary", "mixer": "transformer++"},
            "model.position: rotary changes nothing here, because every attention sets its own key rotary",
        ),
        (
            {"pattern": ["transformer++/99", "titans"]},
            (
                "model.pattern: the window of transformer++/99 is not below task.length 64, so that it is the same as "
                "transformer++ alone"
            ),
        ),
        ({"pattern": ["mamba2", "attention/16"]}, None),
    ],
)
def test_oddities(model: dict[str, Any], line: str | None) -> None:
    assert warnings_of(of(**model)) == ([line] if line else [])


def test_arguments_keep_their_values_through_a_record() -> None:
    given = {"b": [1, 2.5, None], "a": "word", "text": "two words", "flag": True, "inner": {"z": 1, "a": {"x": -1e-3}}}
    run = of(mixer={**OWN, "args": given})
    assert run.model.mixer.keywords == given
    assert RunConfig.model_validate(run.model_dump(mode="json")) == run
    turned = {key: given[key] for key in reversed(given)} | {"inner": {"a": {"x": -1e-3}, "z": 1}}
    assert run_id(of(mixer={**OWN, "args": turned})) == run_id(run)
    assert science(of(mixer=OWN)) == {
        "model.mixer.module": "my.Mixer",
        "model.mixer.name": "module",
        "task.name": "mqar",
    }


def test_sizes_that_only_the_module_knows_are_left_open() -> None:
    alone, behind = of(mixer=OWN), of(mixer=OWN, pattern=["conv/3", "mixer"])
    assert parameters(alone) is None
    assert parameters(behind) is None
    assert state_floats(alone) == state_floats(behind) == (None, None)
    # Embedding 64 * 32, norms 32 each, MLPs 3 * 2 * 32 * 32; the convolution's matrix, biases and taps; the guess.
    blocks = 64 * 32 + 32 + 2 * (2 * 32 + 6 * 32 * 32)
    assert rough_parameters(behind) == blocks + (32 * 32 + 5 * 32) + 4 * 32 * 32
    assert rough_parameters(of()) == parameters(of())

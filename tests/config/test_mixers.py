"""Words for mixers: what they stand for, and that a model has one id however it is written."""

from itertools import product
from typing import Any

import pytest

from mclab.config.ids import canonical, canonical_model, inert, run_id, science
from mclab.config.model import RULES, AttentionMixer, MemoryMixer, ModelConfig
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import leaves

WORDS = ["attention", "attention/8", "conv/3", "transformer++", "transformer++/8", "titans", "retnet", "linear"]
PLUS = {"name": "attention", "rotary": True, "conv": 0}


def of(**model: Any) -> RunConfig:
    return parse_run({"model": model})


def layers(run: RunConfig) -> list[Any]:
    """Every layer with nothing left to the model that it can say itself."""
    model, found = run.model, []
    for mixer in model.mixers:
        if isinstance(mixer, AttentionMixer):
            found.append((mixer.window, mixer.rotates(model.position), mixer.kernel_size(model.conv)))
        else:
            turned, taps = mixer.rotates(model.position), model.conv if "conv" in mixer.model_keys else None
            found.append((mixer.canonical(), turned, taps))
    return found


@pytest.mark.parametrize(
    ("word", "mapping"),
    [
        ("transformer++", PLUS),
        ("transformer++/8", {**PLUS, "window": 8}),
        ("attention", {"name": "attention"}),
        ("attention/16", {"name": "attention", "window": 16}),
        ("conv/5", {"name": "conv", "kernel": 5}),
        ("memory", {}),
        ("titans", {"memory": "titans"}),
        ({"name": "transformer++"}, PLUS),
        ({"name": "transformer++", "window": 8, "rotary": True}, {**PLUS, "window": 8}),
    ],
)
def test_a_word_is_the_mixer_that_it_stands_for(word: Any, mapping: dict[str, Any]) -> None:
    assert of(mixer=word) == of(mixer=mapping)
    assert run_id(of(mixer=word, conv=3)) == run_id(of(mixer=mapping, conv=3))


@pytest.mark.parametrize("memory", RULES)
def test_every_memory_is_a_word(memory: str) -> None:
    """Alone it has every key at its default, caching included; in a pattern it has no cache."""
    assert of(mixer=memory).model.mixer == MemoryMixer(memory=memory)
    mixers = of(pattern=[memory, "conv/3"]).model.mixers
    assert mixers[0] == MemoryMixer(memory=memory, aggregate="none").canonical()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"mixer": "transformer++"}, {"mixer": {"name": "attention"}, "position": "rotary", "conv": 0}),
        ({"mixer": "transformer++", "conv": 7}, {"mixer": "transformer++"}),
        ({"mixer": "transformer++", "position": "rotary"}, {"mixer": "transformer++"}),
        ({"pattern": ["transformer++"]}, {"mixer": "transformer++"}),
        ({"mixer": {"name": "attention", "rotary": False, "conv": 4}}, {"mixer": "attention"}),
        (
            {"mixer": {"name": "attention", "rotary": False}, "position": "learned"},
            {"mixer": "attention"} | {"position": "learned"},
        ),
        (
            {"pattern": ["titans", "attention/16"]},
            {"pattern": ["mixer", "attention/16"], "mixer": {"memory": "titans", "aggregate": "none"}},
        ),
        (
            {"pattern": ["titans", "attention/16"]},
            {"pattern": ["titans", "mixer"], "mixer": "attention/16"},
        ),
        (
            {"pattern": ["titans", "mixer"], "mixer": {"memory": "swla", "aggregate": "none"}},
            {"pattern": ["titans", "swla"]},
        ),
        ({"pattern": ["conv", "attention"]}, {"pattern": ["conv/3", "mixer"], "mixer": "attention"}),
        ({"pattern": ["titans"]}, {"mixer": {"memory": "titans", "aggregate": "none"}}),
        (
            {"pattern": ["titans", "transformer++"], "position": "rotary", "conv": 0},
            {"pattern": ["titans", "attention"], "position": "rotary", "conv": 0},
        ),
        (
            {"pattern": ["transformer++", "mixer"], "conv": 0},
            {"pattern": [*["transformer++", "mixer"] * 2], "conv": 0, "mixer": "linear"},
        ),
        ({"pattern": ["conv/3", "mixer"], "layers": 1}, {"pattern": ["conv/3"], "layers": 1}),
        ({"mixer": {"window": 4}}, {}),
    ],
)
def test_one_model_one_id(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert canonical(of(**one)) == canonical(of(**other))
    assert run_id(of(**one)) == run_id(of(**other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"mixer": "transformer++"}, {"mixer": "attention"}),
        ({"mixer": "transformer++"}, {"mixer": "transformer++/8"}),
        ({"mixer": "transformer++", "position": "learned"}, {"mixer": "transformer++"}),
        ({"mixer": {"name": "attention", "conv": 0}}, {"mixer": "attention"}),
        ({"pattern": ["titans", "transformer++"]}, {"pattern": ["titans", "attention"]}),
        ({"pattern": ["titans", "transformer++"]}, {"pattern": ["transformer++", "titans"]}),
        ({"pattern": ["titans", "mixer"], "mixer": "titans"}, {"pattern": ["titans"]}),
        ({"mixer": {"hybrid": "mal"}}, {}),
        ({"mixer": {"hybrid": "mal"}}, {"mixer": {"hybrid": "mag"}}),
        ({"mixer": {"hybrid": "mal", "window": 4}}, {"mixer": {"hybrid": "mal"}}),
        (
            {"mixer": {"memory": "retnet", "hybrid": "mag"}, "position": "rotary"},
            {"mixer": {"memory": "retnet", "hybrid": "mag"}},
        ),
    ],
)
def test_other_model_other_id(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert run_id(of(**one)) != run_id(of(**other))


MIXERS = [None, "attention", {"name": "attention", "rotary": True}, {**PLUS, "conv": 3}, {}, "retnet", "conv/3"]
EVERY = [
    (position, conv, mixer, pattern)
    for position, conv, mixer in product(["none", "rotary", "learned"], [0, 4], MIXERS)
    for pattern in (
        [],
        *([word, "mixer"] for word in WORDS),
        *(["mixer", *pair] for pair in product(WORDS[1:6], repeat=2)),
    )
]


def test_the_canonical_model_has_the_same_layers_and_stands_still() -> None:
    """Over words, mixers and positions: whatever is lifted to the model or named by a word, each layer stays."""
    seen: dict[str, list[Any]] = {}
    for position, conv, mixer, pattern in EVERY:
        keys = {"position": position, "conv": conv, "pattern": pattern, "layers": 3}
        run = of(**keys, **({} if mixer is None else {"mixer": mixer}))
        one = canonical(run)
        assert layers(one) == layers(run), run.model
        assert canonical(one) == one
        assert run_id(one) == run_id(run)
        assert parse_run({"model": one.model.model_dump()}) == one
        learned = run.model.position == "learned"
        assert seen.setdefault(run_id(run), [learned, *layers(run)]) == [learned, *layers(run)]
    assert len(seen) > 300


def test_what_a_layer_says_itself_makes_the_models_key_inert() -> None:
    cache = {"eval.post_segment", "eval.post_mix"}
    assert inert(of(mixer="transformer++")) == {"model.conv"} | cache
    assert inert(of(mixer="transformer++", pattern=["attention", "mixer"])) == cache
    assert science(of(pattern=["conv/3", "attention/8"])) == {
        "model.mixer.name": "attention",
        "model.mixer.window": 8,
        "model.pattern": ("conv/3", "mixer"),
        "task.name": "mqar",
    }


def test_a_pattern_without_mixer_survives_its_record() -> None:
    run = canonical(of(pattern=["mamba2", "attention/64"]))
    flat = dict(leaves(run))
    assert (flat["model.mixer.memory"], flat["model.mixer.aggregate"]) == ("mamba2", "none")
    assert flat["model.pattern"] == ("mixer", "attention/64")
    assert RunConfig.model_validate(run.model_dump(mode="json")) == run


def test_canonical_leaves_a_canonical_model_alone() -> None:
    model = canonical_model(ModelConfig())
    assert canonical_model(model) is model


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("log_linear", ["attention", "mixer"]), ("attention", ["mixer", "log_linear"])),
        (("attention", ["mixer", "transformer++/16"]), ("transformer++/16", ["attention", "mixer"])),
    ],
)
def test_the_same_layers_are_one_run_whichever_of_them_is_the_mixer(
    one: tuple[str, list[str]], other: tuple[str, list[str]]
):
    ids = {run_id(of(layers=2, mixer=mixer, pattern=pattern)) for mixer, pattern in (one, other)}
    assert len(ids) == 1

"""Mixers by their words, wherever a grid or the command line takes a mixer."""

from typing import Any

import pytest

from mclab.config.model import AttentionMixer, MemoryMixer
from mclab.config.strict import ConfigError
from mclab.plan.dotted import nested
from mclab.plan.grid import plan_from
from mclab.report.text import label
from tests.plan.conftest import Fault, Make

PLUS = AttentionMixer(rotary=True, conv=0)


def memory(**keys: Any) -> MemoryMixer:
    """As a plan has it: keys that nothing reads at their baselines."""
    return MemoryMixer(**keys).canonical()


def mixers(found: Any) -> list[Any]:
    """The mixers of each cell's layers with its model's keys in them: what is the same is lifted to the model."""
    runs = [next(iter(cell.candidates[0].runs.values())) for cell in found.cells]
    return [
        mixer.model_copy(
            update={"rotary": mixer.rotates(run.model.position), "conv": mixer.kernel_size(run.model.conv)}
        )
        if isinstance(mixer := run.model.mixers[0], AttentionMixer)
        else mixer
        for run in runs
    ]


def test_a_grid_of_words(plan: Make) -> None:
    found = plan(
        """
        base: {model.mixer.segment: 4}
        grid: {model.mixer: [transformer++, titans, attention/8, {name: transformer++, window: 8}]}
        """
    )
    assert mixers(found) == [
        PLUS,
        memory(memory="titans"),
        AttentionMixer(window=8, rotary=False, conv=4),
        PLUS.model_copy(update={"window": 8}),
    ]
    names = [cell.name for cell in found.cells]
    assert names == [
        "mixer=transformer++",
        "mixer=titans",
        "mixer=attention/8",
        "mixer={name: transformer++, window: 8}",
    ]
    assert [label(cell.values, {"model.mixer": "mixer"}) for cell in found.cells] == [
        "transformer++",
        "titans",
        "attention/8",
        "transformer++ window=8",
    ]
    assert not found.warnings


def test_a_word_replaces_the_mixer_as_a_whole_and_keys_beside_it_change_it(plan: Make) -> None:
    """In whichever order they are written."""
    found = plan(
        """
        base: {model: {mixer: {memory: swla, segment: 16, gate: input}}}
        changes:
          one: {model.mixer: titans, model.mixer.segment: 4}
          two: {model.mixer.segment: 4, model.mixer: titans}
          three: {model: {mixer: mamba2}}
        """
    )
    titans, mamba = memory(memory="titans", segment=4), memory(memory="mamba2")
    assert mixers(found) == [titans, mamba]
    assert "two is the same as one" in found.notes[-1]


def test_a_word_in_the_base_can_be_changed_by_key(plan: Make) -> None:
    """By the command line, the grid, and the reduced form."""
    text = (
        "base: {model: {mixer: titans}}\ngrid: {model.mixer.gate: [context, input]}\nquick: {base: {model.mixer: swla}}"
    )
    found = plan(text, "model.mixer.segment=4", "model.mixer.depth=1")
    assert mixers(found)[1] == memory(memory="titans", segment=4, depth=1, gate="input")
    assert mixers(plan(text, quick=True))[0] == memory(memory="swla")


def test_words_on_the_command_line() -> None:
    def of(*overrides: str) -> Any:
        return mixers(plan_from({"base": {"model": {"mixer": {"segment": 4}}}}, "x", overrides))[0]

    assert of("model.mixer=titans") == memory(memory="titans")
    assert of("model.mixer.segment=16", "model.mixer=titans") == memory(memory="titans", segment=16)
    assert of("model.mixer=transformer++") == PLUS
    assert of("model.mixer={name: transformer++, window: 4}").window == 4
    assert of("model.mixer=attention", "model.mixer.window=4").window == 4
    assert plan_from({}, "x", ["model.pattern=[mamba2, attention/16]"]).cells[0].name == "base"
    with pytest.raises(
        ConfigError, match=r"model\.mixer=titens: model\.mixer: 'titens' is not a known mixer; did you mean titans"
    ):
        of("model.mixer=titens")


def test_words_and_what_they_stand_for_are_one_cell(plan: Make) -> None:
    found = plan(
        "grid: {model.mixer: [transformer++, {name: attention, rotary: true, conv: 0}, titans, {memory: titans}]}"
    )
    assert [cell.name for cell in found.cells] == ["mixer=transformer++", "mixer=titans"]
    assert any("lists {name: attention, rotary: true, conv: 0} twice" in note for note in found.notes)


def test_conditions_see_what_a_word_stands_for(plan: Make) -> None:
    found = plan(
        """
        grid: {model.mixer: [transformer++, {name: transformer++, window: 8}, titans], model.mixer.window: [8, 16]}
        when: {model.mixer.window: {model.mixer.name: attention}}
        exclude: [{model.mixer.memory: titans}]
        """
    )
    assert [mixer.window for mixer in mixers(found)] == [8, 16]


def test_a_grid_of_patterns(plan: Make) -> None:
    found = plan("grid: {model.pattern: [[titans], [titans, attention/16], [transformer++]]}")
    assert [cell.name for cell in found.cells] == [
        "pattern=[titans]",
        "pattern=[titans, attention/16]",
        "pattern=[transformer++]",
    ]
    with pytest.raises(
        ConfigError, match=r"g\.yaml:1: model\.pattern: no layer is named mixer.*leave model\.mixer out"
    ):
        plan("changes: {a: {}, b: {model.pattern: [titans, attention/16], model.mixer.segment: 4}}")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "model.mixer: titans, model.mixer.memory: linear",
            "model.mixer.memory: mixer titans sets this key to titans; for another value write a mapping, "
            "model.mixer: {name: memory, memory: linear}",
        ),
        (
            "model.mixer.rotary: false, model.mixer: transformer++",
            "model.mixer.rotary: mixer transformer++ sets this key to true; for another value write a mapping, "
            "model.mixer: {name: attention, rotary: false, conv: 0}",
        ),
        (
            "model: {mixer: attention/16, mixer.window: 8}",
            "model.mixer.window: mixer attention/16 sets this key to 16; for another value write a mapping, "
            "model.mixer: {name: attention, window: 8}",
        ),
        (
            "model.mixer: titans, model.mixer.name: attention",
            (
                "model.mixer.name: mixer titans sets this key to memory; for another value write a mapping, "
                "model.mixer: {name: attention}"
            ),
        ),
    ],
)
def test_a_key_beside_a_word_may_not_contradict_it(fault: Fault, keys: str, said: str) -> None:
    """Neither in the base, nor in its reduced form, nor in a row; as no word there would be heard."""
    assert fault(f"base: {{{keys}}}") == f"g.yaml:1: {said}"
    assert fault(f"base: {{}}\nquick: {{base: {{{keys}}}}}") == f"g.yaml:2: {said}"
    assert fault(f"changes:\n  a: {{}}\n  b: {{{keys}}}") == f"g.yaml:3: {said} (cell b)"
    assert fault(f"runs:\n- {{}}\n- {{{keys}}}").startswith(f"g.yaml:3: {said} (cell ")


def test_no_axis_contradicts_the_word_of_another(fault: Fault) -> None:
    said = "model.mixer.memory: mixer titans sets this key to titans; for another value write a mapping"
    assert said in fault("grid: {model.mixer: [titans], model.mixer.memory: [titans, linear]}")
    assert said in fault("grid: {model: [{mixer: titans, mixer.memory: linear}]}")
    assert said in fault("grid: {model: [{mixer: titans}], model.mixer: [swla]}")
    preset = "{model.mixer: {name: transformer++, window: 8}, model.mixer.conv: 4}"
    assert "model.mixer.conv: mixer transformer++ sets this key to 0" in fault(f"runs: [{preset}]")


def test_one_command_line_does_not_contradict_itself() -> None:
    with pytest.raises(
        ConfigError, match=r"^model\.mixer\.conv=2: model\.mixer\.conv: mixer transformer\+\+ sets this key to 0; "
    ):
        plan_from({}, "x", ["model.mixer.conv=2", "model.mixer=transformer++"])


def test_what_repeats_a_word_or_comes_from_above_is_no_contradiction(plan: Make) -> None:
    """The command line and a row are above the base; `conv: 0` says what the preset says."""
    linear = memory()
    assert mixers(plan("base: {model.mixer: titans}", "model.mixer.memory=linear")) == [linear]
    assert mixers(plan("base: {model.mixer: titans}\nchanges: {a: {model.mixer.memory: linear}}")) == [linear]
    assert mixers(plan("base: {model.mixer: transformer++, model.mixer.conv: 0, model.mixer.window: null}")) == [PLUS]
    assert mixers(plan("changes: {a: {model.mixer: transformer++, model.mixer.name: transformer++}}")) == [PLUS]


def test_a_wrong_word_is_told_of_before_the_keys_beside_it(fault: Fault) -> None:
    said = "model.mixer: 'titens' is not a known mixer; did you mean titans?"
    assert fault("base: {model.mixer: titens, model.mixer.segment: 4}") == f"g.yaml:1: {said}"
    assert fault("runs: [{model.mixer.segment: 4, model.mixer: titens}]") == f"g.yaml:1: {said}"


def test_no_key_is_lost_in_what_is_no_mapping() -> None:
    """A stored plan, edited by hand, can have both."""
    for flat in (
        {"model.mixer": "titans", "model.mixer.segment": 4},
        {"model.mixer.segment": 4, "model.mixer": "titans"},
    ):
        with pytest.raises(
            ConfigError, match=r"^x: model\.mixer\.segment: model\.mixer has no such key, because its value is titans; "
        ):
            nested(flat, "x")
    with pytest.raises(ConfigError, match=r"^x: model: must be a mapping, got 3$"):
        nested({"model": 3, "model.dim": 4}, "x")

"""The tasks' keys: what fits, what is refused and how to mend it, presets and the one id of equal tasks."""

import re
from itertools import product
from typing import Any, get_args

import pytest

from mclab.config.ids import canonical, run_id
from mclab.config.parse import parse_run
from mclab.config.strict import ConfigError
from mclab.config.task import TASKS, ArTask, NiahTask
from mclab.config.task.niah import PRESETS, Haystack, Preset, Shape, key_words

#: More room than any preset needs.
ROOM = {"length": 400, "vocab": 128}


def niah(**keys: Any) -> NiahTask:
    task = parse_run({"task": {"name": "niah", **keys}}).task
    assert isinstance(task, NiahTask)
    return task


def test_the_default_task_is_mqar_and_each_name_is_its_own_task():
    assert parse_run({}).task == TASKS["mqar"]()
    for name, task in TASKS.items():
        least = {"module": "my_tasks.copy"} if name == "module" else {}
        assert parse_run({"task": {"name": name, **least}}).task == task(**least)


@pytest.mark.parametrize(
    ("task", "key", "fix"),
    [
        ({"name": "niah", "length": 17}, "length", {"length": 18}),
        ({"name": "niah", "preset": "niah3", "length": 64}, "length", {"length": 68}),
        ({"name": "niah", "preset": "mk1", "length": 47}, "length", {"length": 48}),
        ({"name": "niah", "preset": "mk3"}, "length", {"length": 328}),
        ({"name": "niah", "preset": "mv", "length": 68}, "length", {"length": 69}),
        ({"name": "niah", "preset": "mq", "length": 74}, "length", {"length": 75}),
        ({"name": "niah", "needles": 13}, "length", {"needles": 12}),
        ({"name": "niah", "needles": 13}, "length", {"length": 138}),
        ({"name": "niah", "needles": 31, "length": 400}, "needles", {"vocab": 65}),
        ({"name": "niah", "needles": 31, "length": 400}, "needles", {"needles": 30}),
        ({"name": "niah", "preset": "mk2", "length": 400}, "needles", {"vocab": 77}),
        ({"name": "niah", "asked": 2}, "asked", {"needles": 2}),
        ({"name": "niah", "asked": 2}, "asked", {"asked": 1}),
        ({"name": "niah", "vocab": 42}, "vocab", {"vocab": 43}),
        ({"name": "niah", "depth": [0, 101]}, "depth", {"depth": [0, 100]}),
        ({"name": "niah", "depth": -5}, "depth", {"depth": 0}),
        ({"name": "niah", "values": 0}, "values", {"values": 1}),
        ({"name": "ar", "length": 9}, "length", {"length": 10}),
        ({"name": "ar", "vocab": 3}, "vocab", {"vocab": 4, "length": 40}),
    ],
)
def test_what_does_not_fit_is_refused_with_a_fix_that_works(task: dict[str, Any], key: str, fix: dict[str, Any]):
    few = {"valid": 1, "test": 1}
    with pytest.raises(ConfigError) as caught:
        parse_run({"task": task, "eval": few})
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"task.{key}: ")
    value = next(iter(fix.values()))
    assert re.search(rf"\b{value[-1] if isinstance(value, list) else value}\b", line)
    if task != {"name": "ar", "vocab": 3}:
        parse_run({"task": {**task, **fix}, "eval": few})


@pytest.mark.parametrize("preset", PRESETS)
def test_the_smallest_length_is_the_smallest(preset: Preset):
    least = niah(preset=preset, **ROOM).smallest
    assert niah(preset=preset, length=least).filler_tokens == 0
    with pytest.raises(ConfigError, match=f"got {least - 1}; take {least}"):
        niah(preset=preset, length=least - 1)


def test_words_that_a_key_does_not_take_name_the_near_ones():
    for given, wanted in (
        (
            {"haystack": "noize"},
            'task.haystack: must be noise | text | needles | null, got "noize"; did you mean noise?',
        ),
        ({"haystack": "needels"}, "did you mean needles?"),
        ({"key": "words"}, "did you mean word?"),
        ({"preset": "nia2"}, "did you mean niah2?"),
        ({"pairs": 4}, "task.pairs: is a key of task mqar, but the task here is niah"),
        ({"needels": 4}, "did you mean task.needles?"),
    ):
        with pytest.raises(ConfigError) as caught:
            niah(**given)
        assert wanted in str(caught.value)
    with pytest.raises(
        ConfigError, match=r"task\.depth: is a key of task niah, but the task here is mqar; add name: niah"
    ):
        parse_run({"task": {"depth": 3}})


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_what_its_keys_say(preset: Preset):
    """Equations, section 5."""
    plain, spelt = niah(preset=preset, **ROOM), niah(**PRESETS[preset]._asdict(), **ROOM)
    assert plain.shape == spelt.shape == PRESETS[preset]
    assert run_id(parse_run({"task": plain.model_dump()})) == run_id(parse_run({"task": spelt.model_dump()}))
    assert canonical(parse_run({"task": spelt.model_dump()})).task == plain
    assert plain.answer_tokens == {"niah3": 32, "mk3": 32, "mv": 28, "mq": 28}.get(preset, 7)


AXES = {
    "preset": ("niah1", "niah3", "mk2", "mq"),
    "haystack": (None, *get_args(Haystack)),
    "value": (None, "uuid"),
    "needles": (None, 2, 4),
    "values": (None, 1, 2),
    "asked": (None, 1),
}


def test_equal_tasks_have_one_form_and_others_have_another():
    forms: dict[tuple[Any, ...], NiahTask] = {}
    for values in product(*AXES.values()):
        given = dict(zip(AXES, values, strict=True))
        try:
            task = niah(**given, length=600, vocab=200)
        except ConfigError:
            continue
        form = task.canonical()
        made = (*task.shape._replace(needles=0), task.keys)  # what decides the sequences
        assert forms.setdefault(made, form) == form, given
        assert form.canonical() is form
        assert (*form.shape._replace(needles=0), form.keys) == made
        NiahTask.model_validate(form.model_dump())
    assert len(set(map(repr, forms.values()))) == len(forms) > 30


def test_the_first_preset_that_has_most_in_common_is_taken():
    assert niah(haystack="text").canonical() == niah(preset="niah2")
    assert niah(preset="mq", asked=1).canonical() == niah(preset="mk1")
    form = niah(preset="mq", haystack="noise", values=2, length=300).canonical()
    assert (form.preset, form.haystack, form.values, form.asked) == ("mq", "noise", 2, None)
    assert niah(preset="mk2", needles=7).canonical() == niah(preset="mk2")  # further needles fill it anyhow
    form = niah(preset="mk2", needles=2, length=30).canonical()  # the preset's 4 do not fit
    assert (form.preset, form.haystack, form.needles, form.keys) == ("niah1", "needles", None, 2)


def test_what_a_haystack_of_needles_holds():
    task = niah(preset="mk2", length=128)
    assert (task.keys, task.filler_tokens, task.places) == (12, 0, 12)
    task = niah(preset="mk2", length=127)
    assert (task.keys, task.filler_tokens, task.places) == (11, 9, 20)


def test_depth_is_the_nearest_place():
    task = niah(length=28)  # 10 of filler: 11 places
    assert [task.place(depth) for depth in (0, 4, 5, 14, 15, 50, 95, 100)] == [0, 0, 1, 1, 2, 5, 10, 10]
    assert {niah(length=18).place(depth) for depth in (0, 50, 100)} == {0}


def test_a_vocabulary_is_shared_out_whole():
    for vocab in (43, 64, 100, 101, 102):
        task = niah(vocab=vocab)
        assert 19 + (vocab - 19) // 3 + key_words(vocab) == vocab == task.vocab
    assert key_words(64) == 30


@pytest.mark.parametrize(("vocab", "length", "space"), [(4, 4, 2), (4, 100, 2), (6, 6, 30), (20, 4, 90)])
def test_small_spaces_of_ar(vocab: int, length: int, space: int):
    """By hand: one key of two values; two keys of three, twice: 2 * 3 + 2 * 6 * 2; nine keys of ten."""
    assert ArTask(vocab=vocab, length=length).space() == space


def test_spaces_grow_and_are_quick_to_count_however_large():
    assert 10**6 < ArTask(length=8).space() < ArTask(length=10).space() < ArTask().space() == 2**64
    assert ArTask(vocab=2**20, length=4).space() == (2**19 - 1) * 2**19
    assert ArTask(vocab=2**20, length=2**16).space() == 2**64
    assert niah(length=18).space() == 30 * 10**7
    assert niah(preset="mk3", length=2**12).space() > 16**64


def test_every_preset_names_all_its_keys():
    assert set(Shape._fields) <= set(NiahTask.model_fields)
    assert set(PRESETS) == set(get_args(Preset))

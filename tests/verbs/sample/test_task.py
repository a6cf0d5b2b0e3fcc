"""A task's sequences as a person reads them."""

import re

import pytest

from mclab.config.strict import ConfigError
from mclab.config.task import MqarTask
from mclab.config.task.niah import PRESETS
from mclab.verbs.sample.task import sampled, without_recall, words
from mclab.verbs.sample.text import LEGEND, as_text, marked, recall_text, row_text

SMALL = ("vocab=16", "length=16", "pairs=3")


def rows(*overrides: str, task: str = "mqar", seed: int = 0, split: str = "train", count: int = 2):
    return sampled(task, overrides, seed=seed, split=split, count=count)


def test_a_sequence_that_can_be_checked_by_hand() -> None:
    row = rows(*SMALL)[1]
    assert row["tokens"] == [2, 11, 3, 15, 4, 12, 2, 0, 4, 0, 3, 0, 0, 0, 0, 0]
    assert row["answers"] == {6: 11, 8: 12, 10: 15}
    assert (row["sample"], row["split"], row["seed"], row["slice"]) == (1, "train", 0, "pairs=3")
    assert row["roles"] == ["key", "value"] * 3 + ["query", "filler"] * 3 + ["filler"] * 4
    assert as_text([row]) == (
        "sample 1 of train, seed 0, pairs=3\n"
        "    0  k2      v11     k3      v15     k4      v12     ?k2=v11 .       "
        "?k4=v12 .       ?k3=v15 .       .       .       .       .\n"
        f"\n{LEGEND}"
    )


def test_every_answer_can_be_looked_up_and_none_is_in_the_marks_of_the_input() -> None:
    for row in rows("pairs=[4, 8]", count=20):
        pairs = len(row["answers"])
        table = dict(zip(row["tokens"][0 : 2 * pairs : 2], row["tokens"][1 : 2 * pairs : 2], strict=True))
        assert all(table[row["tokens"][at]] == answer for at, answer in row["answers"].items())
        assert row["slice"] == f"pairs={pairs}"


@pytest.mark.parametrize("preset", PRESETS)
def test_needles_can_be_read(preset: str) -> None:
    """Every needle, every question and what is wanted, in the task's own words."""
    for row in rows(f"preset={preset}", "length=340", "vocab=128", task="niah"):
        text = " ".join(marked(row))
        keys = "k[0-9]+" if preset != "mk3" else "[0-9a-f](?: [0-9a-f]){31}"
        value = "[0-9a-f](?: [0-9a-f])*"
        hay, _, question = text.partition(" ASK ")
        needles = re.findall(f"KEY ({keys}) IS ({value})", hay)
        assert re.sub(f"KEY {keys} IS {value}|[.]w[0-9]+| ", "", hay) == ""
        for turn in question.split(" ASK "):
            key, fed = turn.split(" ?", 1)[0], [word for word in turn.split() if word.startswith("?")]
            asked = " ".join([key, fed[0][1:].partition("=")[0]]) if preset == "mk3" else fed[0][1:].partition("=")[0]
            wanted = " ".join(word.partition("=")[2] for word in fed)
            assert wanted == " ".join(held for own, held in needles if own == asked)
        assert row["slice"] is None  # training keeps to no depth
    (row,) = rows(f"preset={preset}", "length=340", "vocab=128", "depth=25", task="niah", split="test", count=1)
    assert row["slice"] == "depth=25"


def test_a_sequence_that_is_scored_everywhere_shows_its_query_alone() -> None:
    trained, tested = (as_text(rows("length=12", task="ar", count=1, split=split)) for split in ("train", "test"))
    assert trained.splitlines()[0] == "sample 0 of train, seed 0, pairs=5, every next token is scored"
    assert trained.splitlines()[1].split() == [
        *("0", "k6", "v17", "k2", "v11", "k5", "v18", "k5", "v18", "k7", "v19", "|", "?k7=v19"),
    ]
    assert tested.splitlines()[0] == "sample 0 of test, seed 0, pairs=5"
    assert tested.count("?k") == 1


def test_remarks_stand_behind_their_tokens_and_lines_stay_aligned() -> None:
    row = rows(*SMALL)[1]
    assert words(MqarTask(), [0, 2, 40]) == ["0", "k2", "v40"]
    assert row["words"][:3] == ["k2", "v11", "k3"]
    assert row["wanted"] == {6: "v11", 8: "v12", 10: "v15"}
    line = row_text(row, {6: "!", 8: " no"}).splitlines()[1]
    assert "?k2=v11!   .          ?k4=v12 no ." in line


def test_seeds_and_splits_differ_and_the_same_is_the_same() -> None:
    tokens = [rows(*SMALL, seed=seed, split=split)[0]["tokens"] for seed in (0, 1) for split in ("train", "valid")]
    assert len({tuple(each) for each in tokens}) == 4
    assert rows(*SMALL) == rows(*SMALL)


def test_what_predictors_without_recall_answer_and_how_often_they_are_right() -> None:
    """Of three pairs the latest value is right in one question of three, and never where the key is another's."""
    for row in rows("pairs=3", count=5):
        assert set(row["without_recall"]) == {"latest value", "any value", "position alone", "bigram"}
        assert row["without_recall"]["latest value"] == dict.fromkeys(row["answers"], row["tokens"][5])
        assert set(row["without_recall"]["any value"].values()) <= set(row["tokens"][1:6:2])
    found = without_recall("mqar", ["pairs=[3, 4]"], seed=0)
    assert list(found) == ["train", "pairs=3", "pairs=4"]
    assert found["pairs=3"]["latest value"] == pytest.approx(1 / 3)
    assert found["train"]["latest value"] == pytest.approx(2 / 7, abs=0.01)
    lines = recall_text(found).splitlines()
    assert lines[1].split() == list(found)
    assert [line.split()[-2:] for line in lines if line.startswith("latest value")] == [["0.333", "0.250"]]


def test_with_one_key_no_copy_is_a_guess() -> None:
    assert set(without_recall("niah", ["length=40"], seed=0)["train"]) == {"bigram"}


def test_filler_without_distractors_contradicts_nothing_and_with_them_it_is_counted() -> None:
    odd = ("vocab=128", "length=64", "pairs=8", "filler=random")
    assert sum(row["contradicted"] for row in rows(*odd, count=200)) == 0
    found = rows(*odd, "distractors=true", count=200)
    share = sum(row["contradicted"] for row in found) / sum(len(row["answers"]) for row in found)
    assert 0.05 < share < 0.11
    assert f"{sum(row['contradicted'] for row in found)} of 1600 queries are contradicted" in as_text(found)
    assert "contradicted" not in as_text(rows(*odd))
    assert " .k17" in as_text(rows(*odd, count=20))


def test_lines_are_aligned_and_count_tokens() -> None:
    lines = as_text(rows("pairs=16", "vocab=200", count=1)).splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["0", "16", "32", "48"]
    starts = {line.index(line.split()[2]) for line in lines[1:5]}
    assert len(starts) == 1


@pytest.mark.parametrize("given", [["task.pairs=2"], ["pairs=2"], ["pairs=[2]", "train.steps=3", "model.dim=16"]])
def test_keys_with_and_without_their_room(given: list[str]) -> None:
    assert rows(*given)[0]["slice"] == "pairs=2"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"task": "mqarr"},
            r"task.name: must be mqar \| ar \| niah \| text \| facts \| module, got .*did you mean mqar?",
        ),
        ({"split": "trian"}, "split: 'trian' is none of train, valid, test"),
        ({"overrides": ["paris=4"]}, "task.paris: unknown key; did you mean task.pairs?"),
        ({"overrides": ["vocab=16", "pairs=16"]}, "take vocab 34 or at most 7 pairs"),
        ({"overrides": ["length=15", "pairs=2"]}, "needs an even length, got 15; take 16"),
        ({"task": "niah", "overrides": ["preset=mk3"]}, "need length 328, got 128; take 328"),
        ({"task": "ar", "overrides": ["vocab=4", "length=4"]}, "only 2 different sequences exist, too few for train"),
    ],
)
def test_faults(given: dict, message: str) -> None:
    whole = {"task": "mqar", "overrides": [], "seed": 0, "split": "train", "count": 1, **given}
    with pytest.raises(ConfigError, match=message) as caught:
        sampled(whole.pop("task"), whole.pop("overrides"), **whole)
    assert "\n" not in str(caught.value)

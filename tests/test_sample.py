"""A task's sequences as a person reads them."""

import pytest

from mclab.config.strict import ConfigError
from mclab.sample import LEGEND, as_text, sampled

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
        "    0  k2    v11   k3    v15   k4    v12   ?2=11 .     ?4=12 .     ?3=15 .     .     .     .     .\n"
        f"\n{LEGEND}"
    )


def test_every_answer_can_be_looked_up_and_none_is_in_the_marks_of_the_input() -> None:
    for row in rows("pairs=[4, 8]", count=20):
        pairs = len(row["answers"])
        table = dict(zip(row["tokens"][0 : 2 * pairs : 2], row["tokens"][1 : 2 * pairs : 2], strict=True))
        assert all(table[row["tokens"][at]] == answer for at, answer in row["answers"].items())
        assert row["slice"] == f"pairs={pairs}"


def test_seeds_and_splits_differ_and_the_same_is_the_same() -> None:
    tokens = [rows(*SMALL, seed=seed, split=split)[0]["tokens"] for seed in (0, 1) for split in ("train", "valid")]
    assert len({tuple(each) for each in tokens}) == 4
    assert rows(*SMALL) == rows(*SMALL)


def test_filler_without_distractors_contradicts_nothing_and_with_them_it_is_counted() -> None:
    odd = ("vocab=128", "length=64", "pairs=8", "filler=random")
    assert sum(row["contradicted"] for row in rows(*odd, count=200)) == 0
    found = rows(*odd, "distractors=true", count=200)
    share = sum(row["contradicted"] for row in found) / sum(len(row["answers"]) for row in found)
    assert 0.05 < share < 0.11
    assert f"{sum(row['contradicted'] for row in found)} of 1600 queries contradicted" in as_text(found)
    assert "contradicted" not in as_text(rows(*odd))
    assert " .17" in as_text(rows(*odd, count=20))


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
        ({"task": "mqarr"}, "task.name: needs mqar, got .*did you mean mqar?"),
        ({"split": "trian"}, "split: 'trian' is none of train, valid, test"),
        ({"overrides": ["paris=4"]}, "task.paris: unknown key; did you mean task.pairs?"),
        ({"overrides": ["vocab=16", "pairs=16"]}, "take vocab 34 or at most 7 pairs"),
        ({"overrides": ["length=15", "pairs=2"]}, "needs an even length, got 15; take 16"),
    ],
)
def test_faults(given: dict, message: str) -> None:
    whole = {"task": "mqar", "overrides": [], "seed": 0, "split": "train", "count": 1, **given}
    with pytest.raises(ConfigError, match=message) as caught:
        sampled(whole.pop("task"), whole.pop("overrides"), **whole)
    assert "\n" not in str(caught.value)

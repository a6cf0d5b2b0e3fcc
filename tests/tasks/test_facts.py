"""A map learned into the weights: the same in every split, another for each seed, told by no single token."""

import pytest
import torch

from mclab.config.task import FactsTask
from mclab.tasks import SPLITS, facts
from mclab.tasks.baseline import fitted_on, scored
from mclab.tasks.predictors import predictors
from tests.tasks.cases import sequences

TASK = FactsTask(facts=100, vocab=40, length=32)


def learned(seed: int, split: str, count: int = 200) -> dict[tuple[int, int], int]:
    """What a reader who remembers everything knows after these sequences."""
    known: dict[tuple[int, int], int] = {}
    for tokens, wanted, _ in sequences(facts.batch(TASK, [seed], split, 0, count, "cpu")):
        assert list(wanted) == list(range(1, 32, 2))
        for at, answer in wanted.items():
            key = (tokens[at - 1], tokens[at])
            assert known.setdefault(key, answer) == answer
    return known


def test_the_map_is_one_and_the_same_in_every_split() -> None:
    maps = [learned(3, split) for split in SPLITS]
    assert maps[0] == maps[1] == maps[2]
    assert len(maps[0]) == 100
    assert len(set(maps[0].values())) > 15
    assert all(20 <= value < 40 for value in maps[0].values())


def test_every_seed_has_a_map_of_its_own_and_a_pack_is_its_seeds() -> None:
    one, other = learned(0, "train"), learned(1, "train")
    assert one.keys() == other.keys()
    assert sum(one[key] == other[key] for key in one) < 20
    both = facts.values(TASK, [0, 1], torch.device("cpu"))
    assert {(f // 10, 10 + f % 10): int(both[1, f]) for f in range(100)} == other


def test_no_single_token_of_a_key_says_its_value() -> None:
    found = scored(TASK, predictors(TASK), fitted_on([(1, TASK)], 0), 0, "test", 200)
    assert found["bigram"] < 0.3


def test_values_stand_in_no_sequence() -> None:
    batch = facts.batch(TASK, [0], "test", 0, 100, "cpu")
    assert int(batch.tokens.max()) < 20 <= int(batch.answers.min())


@pytest.mark.parametrize(
    ("keys", "message"),
    [({"facts": 1000}, "take vocab 66 or at most 961 facts"), ({"length": 9}, "needs an even length, got 9; take 10")],
)
def test_what_does_not_fit_is_refused_with_the_smallest_fix(keys: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FactsTask(**keys)
    assert FactsTask(facts=1000, vocab=66).values == 2
    assert FactsTask(facts=961).values == 2


def test_words() -> None:
    assert [facts.token_name(TASK, token) for token in (0, 9, 10, 19, 20, 39)] == ["a0", "a9", "b0", "b9", "v0", "v19"]

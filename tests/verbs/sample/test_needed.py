"""Where a sequence holds what its queries need."""

import pytest

from mclab.config.run import RunConfig
from mclab.verbs.sample.needed import Pair, needed, pairs
from mclab.verbs.sample.task import rows_of

LETTERS = {"k": "key", "v": "value", "q": "query", "m": "mark", "a": "answer", ".": "filler"}


def roles(text):
    return [LETTERS[letter] for letter in text.replace(" ", "")]


def test_pairs_of_single_tokens_and_of_runs():
    assert pairs([1, 11, 2, 12, 0, 3], roles("kv kv . k")) == [Pair((1,), (11,), (1,)), Pair((2,), (12,), (3,))]
    tokens = [9, 1, 2, 8, 5, 6, 7, 0]
    assert pairs(tokens, roles("m kk m vvv .")) == [Pair((1, 2), (5, 6, 7), (4, 5, 6))]
    assert pairs([5, 1, 0, 6], roles("v k . v")) == []


def test_each_query_of_a_flat_recall():
    tokens = [1, 11, 2, 12, 2, 0, 1]
    shape = roles("kv kv q . q")
    assert needed(tokens, shape, [(4, 12)]) == {4: (3,)}
    assert needed(tokens, shape, [(6, 11)]) == {6: (1,)}
    assert needed(tokens, shape, [(6, 12)]) == {6: ()}  # that value stands behind another key


def test_a_pair_that_stands_twice_is_held_twice_and_another_key_with_its_value_is_not():
    tokens = [1, 11, 2, 11, 1, 11, 0, 1]
    assert needed(tokens, roles("kv kv kv m q"), [(7, 11)]) == {7: (1, 5)}


def test_answers_of_several_tokens_and_several_values():
    tokens = [9, 1, 8, 5, 6, 9, 2, 8, 6, 6, 7, 1, 5, 6, 7, 2, 6]
    shape = roles("mk m vv mk m vv mq aa mq a")
    asked = [(11, 5), (12, 6), (15, 6), (16, 6)]
    assert needed(tokens, shape, asked) == {11: (3,), 12: (4,), 15: (8,), 16: (9,)}


@pytest.mark.parametrize(
    "task",
    [
        {"name": "mqar", "vocab": 64, "length": 64, "pairs": [4, 8]},
        {"name": "mqar", "vocab": 64, "length": 64, "pairs": [8], "filler": "random"},
        {"name": "ar"},
        {"name": "niah", "length": 64},
        {"name": "niah", "length": 128, "preset": "niah3"},
        {"name": "niah", "length": 128, "preset": "mk2"},
        {"name": "niah", "length": 128, "preset": "mv"},
        {"name": "niah", "length": 128, "preset": "mq"},
    ],
    ids=str,
)
def test_every_task_holds_every_answer_behind_its_key(task):
    """The value that is found is the one that is wanted, before the query, and behind the key that is asked."""
    run = RunConfig.model_validate({"task": task, "eval": {"valid": 1, "test": 1}})
    for row in rows_of(run, 0, "test", 20):
        tokens = row["tokens"]
        every = list(row["answers"].items())
        size = run.task.answer_tokens
        for answer in (every[at : at + size] for at in range(0, len(every), size)):
            found = needed(tokens, row["roles"], answer)
            assert [at for at, _ in answer] == list(found)
            for at, wanted in answer:
                assert found[at]
                assert all(tokens[place] == wanted and place < at for place in found[at])
                assert all(row["roles"][place] == "value" for place in found[at])
            if task["name"] != "niah":
                (at, _), places = answer[0], found[answer[0][0]]
                assert {tokens[place - 1] for place in places} == {tokens[at]}

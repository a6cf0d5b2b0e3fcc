"""What holds for every task, read by readers who do not know its generator; a new task is tested by being registered.

Purity, the same bits in other processes and batches and on other devices, is in test_purity.py.
"""

import pytest
import torch

from mclab.config.task import TASKS as CONFIGS
from mclab.tasks import NO_ANSWER, NO_SLICE, SPLITS, TASKS, Role
from mclab.tasks.splits import ENOUGH
from tests.tasks.cases import CASES, OUTSIDE, make, sequences
from tests.tasks.readers import READERS

each_case = pytest.mark.parametrize("name", CASES)
each_known = pytest.mark.parametrize("name", [name for name in CASES if CASES[name].name not in OUTSIDE])
each_split = pytest.mark.parametrize("split", SPLITS)
#: What is scored on train for its own sake, the next token everywhere, is not what a reader knows.
EVERYWHERE = {name for name in CASES if getattr(CASES[name], "loss", None) == "all"}


def test_every_task_is_here_with_a_maker_and_a_reader():
    assert TASKS.keys() == CONFIGS.keys() == {*READERS, *OUTSIDE} == {config.name for config in CASES.values()}


@each_known
@each_split
def test_just_what_a_reader_of_the_prefix_knows_is_scored(name, split):
    """Every answer follows from what stands before it, and wherever an answer follows, it is wanted."""
    reader = READERS[CASES[name].name]
    for tokens, wanted, _ in sequences(make(name, split=split, count=10)):
        known = {at: answer for at in range(len(tokens)) if (answer := reader(tokens[: at + 1])) is not None}
        assert known
        if split == "train" and name in EVERYWHERE:
            assert list(wanted) == list(range(len(tokens)))
            assert list(wanted.values()) == [*tokens[1:], *known.values()]
        elif getattr(CASES[name], "filler", None) != "random":
            assert wanted == known
        else:  # two equal tokens of random filler look like a pair and its query
            assert wanted == {at: known[at] for at in wanted}


@each_case
@each_split
def test_shapes_padding_and_ranges(name, split):
    config, batch = CASES[name], make(name, (3, 4), split, count=6)
    rows = (2, 6)
    assert {tensor.dtype for tensor in batch} == {torch.int64}
    assert batch.tokens.shape == (*rows, config.length)
    assert batch.positions.shape == batch.answers.shape
    assert batch.slices.shape == batch.fingerprints.shape == batch.positions.shape[:2] == rows
    scored = batch.answers != NO_ANSWER
    assert ((batch.tokens >= 0) & (batch.tokens < config.vocab)).all()
    assert ((batch.answers[scored] >= 0) & (batch.answers[scored] < config.vocab)).all()
    assert (batch.answers[~scored] == -100).all()
    assert (batch.positions[~scored] == 0).all()
    assert ((batch.positions >= 0) & (batch.positions < config.length)).all()
    least = NO_SLICE if split == "train" else 0
    assert ((batch.slices >= least) & (batch.slices < len(config.slices))).all()


@each_case
def test_answers_are_whole(name):
    """`answer_tokens` positions side by side are one answer: all scored or none, in order."""
    config, batch = CASES[name], make(name, split="test", count=30)
    assert batch.answers.shape[-1] % config.answer_tokens == 0
    scored = (batch.answers != NO_ANSWER).unflatten(-1, (-1, config.answer_tokens))
    assert (scored.all(-1) == scored.any(-1)).all()
    if config.answer_tokens > 1:
        assert (batch.positions.diff(dim=-1) > 0).all()


@each_known
def test_the_last_token_of_an_answer_is_never_read(name):
    batch = make(name, split="test", count=30)
    last = CASES[name].answer_tokens - 1
    for tokens, wanted, _ in sequences(batch):
        at, answer = list(wanted.items())[last]
        assert at == len(tokens) - 1 or CASES[name].name == "mqar"
        assert answer in range(CASES[name].vocab)


@each_case
@pytest.mark.parametrize("split", ["train", "test"])
def test_slices_are_drawn_alike_often_and_each_can_be_had_alone(name, split):
    """A task may keep to no slice in training; then whichever is asked for makes the same sequences."""
    config, whole = CASES[name], make(name, split=split, count=2000)
    if (whole.slices == NO_SLICE).all():
        assert split == "train"
        alone = TASKS[config.name].batch(config.only(config.slices[-1]), [0], split, 0, 200, "cpu")
        assert torch.equal(alone.tokens, whole.tokens[:, :200])
        return
    counts = torch.bincount(whole.slices[0], minlength=len(config.slices)).double()
    expected = 2000 / len(config.slices)
    assert ((counts - expected) ** 2 / expected).sum() < 20  # 0.9995 quantile at four degrees of freedom
    for number, part in enumerate(config.slices):
        alone = config.only(part)
        assert alone.slices == (part,)
        assert (alone.vocab, alone.length, alone.answer_tokens) == (config.vocab, config.length, config.answer_tokens)
        batch = TASKS[config.name].batch(alone, [0], split, 0, 200, "cpu")
        assert not batch.slices.any()
        both = make(name, split=split, count=200)
        same = (both.slices == number)[0]
        if alone.space() >= ENOUGH and config.name != "mqar":  # a slice alone is that slice of the mix
            assert torch.equal(batch.tokens[0, same], both.tokens[0, same])
    with pytest.raises(KeyError):
        config.only("nothing=1")


@each_case
@each_split
def test_roles_and_words_name_every_token(name, split):
    config, batch = CASES[name], make(name, split=split, count=30)
    task = TASKS[config.name]
    roles = task.roles(config, batch)
    assert roles.shape == batch.tokens.shape
    assert set(roles.unique().tolist()) <= set(Role)
    if split != "train" or name not in EVERYWHERE:
        scored = batch.answers != NO_ANSWER
        assert torch.isin(roles.gather(-1, batch.positions)[scored], torch.tensor([Role.QUERY, Role.ANSWER])).all()
    words = [task.token_name(config, token) for token in range(config.vocab)]
    assert len(set(words)) == config.vocab
    assert not any(word.split() != [word] for word in words)


@each_known
def test_filler_repeats_no_live_key(name):
    config, batch = CASES[name], make(name, count=60)
    roles = TASKS[config.name].roles(config, batch)
    for tokens, role in zip(batch.tokens[0].tolist(), roles[0].tolist(), strict=True):
        by_role = {r: {t for t, own in zip(tokens, role, strict=True) if own == r} for r in Role}
        assert not by_role[Role.FILLER] & (by_role[Role.KEY] | by_role[Role.QUERY])
        assert by_role[Role.QUERY] <= by_role[Role.KEY]


@each_case
def test_splits_are_disjoint(name):
    held = {split: make(name, range(100), split, count=20).fingerprints.unique() for split in SPLITS}
    assert len(torch.cat(list(held.values())).unique()) == sum(map(len, held.values()))
    sets = {split: {tuple(t) for t, *_ in sequences(make(name, range(20), split, count=20))} for split in SPLITS}
    assert len(set.union(*sets.values())) == sum(map(len, sets.values()))

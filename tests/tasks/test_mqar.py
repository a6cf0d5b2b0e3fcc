"""What an mqar sequence is, read by an independent reader, and how its parts are distributed."""

from math import perm

import pytest
import torch
from scipy.stats import chisquare

from mclab.config.task import MqarTask
from mclab.tasks import NO_ANSWER, Batch, Role, mqar

LUCKY = 1e-3  # the data is fixed, so a test at this level passes always or never

CONFIGS = {
    "default": MqarTask(),
    "uniform": MqarTask(spread="uniform"),
    "random": MqarTask(filler="random"),
    "distractors": MqarTask(vocab=128, pairs=(8,), filler="random", distractors=True),
    "one pair": MqarTask(vocab=8, length=4, pairs=(1,), spread="uniform"),
    "full": MqarTask(vocab=18, length=32, pairs=(8,), filler="random"),
    "odd vocab": MqarTask(vocab=15, length=16, pairs=(2, 4), filler="random"),
    "published": MqarTask(vocab=8192, length=256, pairs=(16, 64)),
}
each_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())


def draw(config: MqarTask, count: int = 100, seeds: tuple[int, ...] = (0,), split: str = "train") -> Batch:
    return mqar.batch(config, seeds, split, 0, count, "cpu")


def rows(batch: Batch):
    """Each sequence as plain lists: its tokens, and what is wanted where, in the order of pairs."""
    for tokens, positions, answers in zip(
        batch.tokens.flatten(0, 1).tolist(),
        batch.positions.flatten(0, 1).tolist(),
        batch.answers.flatten(0, 1).tolist(),
        strict=True,
    ):
        yield tokens, [(p, a) for p, a in zip(positions, answers, strict=True) if a != NO_ANSWER]


def test_a_sequence_that_can_be_checked_by_hand():
    """Pairs 2 -> 11, 3 -> 15, 4 -> 12 on tokens 0 to 5; then 2 is asked at 6, 4 at 8 and 3 at 10."""
    config = MqarTask(vocab=16, length=16, pairs=(3,))
    batch = mqar.batch(config, [0], "train", 1, 1, "cpu")
    assert batch.tokens.tolist() == [[[2, 11, 3, 15, 4, 12, 2, 0, 4, 0, 3, 0, 0, 0, 0, 0]]]
    assert batch.positions.tolist() == [[[6, 10, 8]]]
    assert batch.answers.tolist() == [[[11, 15, 12]]]
    assert batch.slices.tolist() == [[0]]
    k, v, q, f = Role.KEY, Role.VALUE, Role.QUERY, Role.FILLER
    assert mqar.roles(config, batch).tolist() == [[[k, v, k, v, k, v, q, f, q, f, q, f, f, f, f, f]]]


@each_config
def test_shapes_and_types(config):
    batch = draw(config, count=5, seeds=(3, 4))
    most = max(config.pairs)
    shapes = [(2, 5, config.length), (2, 5, most), (2, 5, most), (2, 5), (2, 5)]
    assert [tuple(t.shape) for t in batch] == shapes
    assert {t.dtype for t in batch} == {torch.int64}
    assert mqar.roles(config, batch).shape == batch.tokens.shape


@each_config
def test_a_reader_of_the_prefix_alone_finds_every_answer(config):
    """It reads the opening pairs, then looks up the key at each scored position; it never looks past it."""
    for tokens, wanted in rows(draw(config)):
        for position, answer in wanted:
            prefix = tokens[: position + 1]
            opening = dict(zip(prefix[0 : 2 * len(wanted) : 2], prefix[1 : 2 * len(wanted) : 2], strict=True))
            assert opening[prefix[-1]] == answer


@each_config
def test_keys_values_and_queries_are_what_the_definition_says(config):
    batch = draw(config)
    half = config.vocab // 2
    for (tokens, wanted), which in zip(rows(batch), batch.slices.flatten().tolist(), strict=True):
        pairs = config.pairs[which]
        keys, values = tokens[0 : 2 * pairs : 2], tokens[1 : 2 * pairs : 2]
        assert len(wanted) == pairs
        assert len(set(keys)) == pairs
        assert all(1 <= key < half for key in keys)
        assert len(set(values)) == pairs
        assert all(half <= value < config.vocab for value in values)
        assert [tokens[p] for p, _ in wanted] == keys  # query i is that of pair i
        assert [answer for _, answer in wanted] == values
        assert len({p for p, _ in wanted}) == pairs
        assert all(p % 2 == 0 and 2 * pairs <= p < config.length for p, _ in wanted)


@each_config
def test_the_mask_is_exact(config):
    batch = draw(config)
    live = torch.arange(max(config.pairs)) < torch.tensor(config.pairs)[batch.slices].unsqueeze(-1)
    assert torch.equal(batch.answers != NO_ANSWER, live)
    assert (batch.answers[~live] == -100).all()
    assert (batch.positions[~live] == 0).all()
    assert (mqar.roles(config, batch) == Role.QUERY).sum() == live.sum()


@each_config
def test_roles_name_every_token(config):
    batch = draw(config)
    named = mqar.roles(config, batch).flatten(0, 1).tolist()
    for (tokens, wanted), role in zip(rows(batch), named, strict=True):
        pairs, asked = len(wanted), {p for p, _ in wanted}
        expected = [Role.KEY, Role.VALUE] * pairs
        expected += [Role.QUERY if p in asked else Role.FILLER for p in range(2 * pairs, len(tokens))]
        assert role == expected


def filler_of(config: MqarTask, batch: Batch) -> torch.Tensor:
    return batch.tokens[mqar.roles(config, batch) == Role.FILLER]


def test_zero_filler_is_zero():
    assert not filler_of(MqarTask(), draw(MqarTask())).any()


@pytest.mark.parametrize("config", [CONFIGS["random"], CONFIGS["full"], CONFIGS["odd vocab"]])
def test_random_filler_holds_no_live_key(config):
    for tokens, wanted in rows(draw(config, count=300)):
        keys = set(tokens[0 : 2 * len(wanted) : 2])
        assert sum(token in keys for token in tokens) == 2 * len(wanted)  # as a key and as a query


def test_random_filler_is_uniform_over_the_whole_vocabulary_but_the_live_keys():
    config = MqarTask(vocab=12, length=16, pairs=(2,), filler="random")
    batch = draw(config, count=20_000)
    keys = batch.tokens[0, :, [0, 2]].sort(-1).values
    one_three = (keys == torch.tensor([1, 3])).all(-1)
    counts = torch.bincount(filler_of(config, Batch(*(t[:, one_three] for t in batch))), minlength=12)
    assert counts[[1, 3]].tolist() == [0, 0]
    assert chisquare(counts[[0, 2, *range(4, 12)]]).pvalue > LUCKY


def test_random_filler_of_a_mix_is_uniform_in_each_part():
    config = MqarTask(vocab=12, length=16, pairs=(1, 4), filler="random")
    batch = draw(config, count=20_000)
    for which in range(2):
        part = Batch(*(t[:, batch.slices[0] == which] for t in batch))
        counts = torch.bincount(filler_of(config, part), minlength=12)
        assert len(counts) == 12
        never_keys, free = counts[[0, *range(6, 12)]], 12 - config.pairs[which]
        assert chisquare(never_keys).pvalue > LUCKY
        expected = counts.sum().double() * torch.tensor([7, free - 7]) / free
        assert chisquare([never_keys.sum(), counts[1:6].sum()], expected).pvalue > LUCKY


def test_distractors_contradict_eight_percent_of_the_queries():
    """A key with another token after it, between the pairs and the query: the published generator's flaw."""
    config, contradicted, asked = CONFIGS["distractors"], 0, 0
    for tokens, wanted in rows(draw(config, count=2000)):
        for position, answer in wanted:
            between = range(2 * len(wanted), position)
            contradicted += any(tokens[j] == tokens[position] and tokens[j + 1] != answer for j in between)
            asked += 1
    assert 0.07 < contradicted / asked < 0.095


def test_keys_and_values_are_uniform_and_independent_of_each_other():
    config = MqarTask(vocab=22, length=16, pairs=(3,))  # 10 keys, 11 values
    tokens = draw(config, count=60_000).tokens[0]
    for pair in range(3):
        key, value = tokens[:, 2 * pair] - 1, tokens[:, 2 * pair + 1] - 11
        assert chisquare(torch.bincount(key * 11 + value)).pvalue > LUCKY
    first, second = tokens[:, 0] - 1, tokens[:, 2] - 1
    counts = torch.bincount(first * 10 + second, minlength=100).view(10, 10)
    assert chisquare(counts[~torch.eye(10, dtype=torch.bool)]).pvalue > LUCKY


def test_large_vocabularies_are_uniform_too():
    tokens = draw(CONFIGS["published"], count=4000).tokens[0]
    assert chisquare(torch.bincount(tokens[:, 0:32:2].flatten() - 1, minlength=4095)).pvalue > LUCKY
    assert chisquare(torch.bincount(tokens[:, 1:32:2].flatten() - 4096, minlength=4096)).pvalue > LUCKY


@pytest.mark.parametrize("spread", ["power", "uniform"])
def test_the_first_slot_has_the_exact_weights(spread):
    """The mean of ln g is the sharper of the two: it tells the exponent 0.99 from 1."""
    config, parts = MqarTask(pairs=(4,), spread=spread), range(0, 400_000, 50_000)
    slots = [mqar.batch(config, [0], "train", start, 50_000, "cpu").positions[0, :, 0] // 2 - 4 for start in parts]
    counts = torch.bincount(torch.cat(slots), minlength=28)
    g = torch.arange(1, 29, dtype=torch.float64)
    weight = 0.01 * g ** (0.01 - 1) if spread == "power" else torch.ones_like(g)
    share = weight / weight.sum()
    assert chisquare(counts, 400_000 * share).pvalue > LUCKY
    mean = (share * g.log()).sum()
    deviation = ((share * (g.log() - mean) ** 2).sum() / 400_000).sqrt()
    assert abs((counts * g.log()).sum() / 400_000 - mean) < 3 * deviation


def test_the_mix_is_even_and_each_part_has_its_own_slots():
    batch = draw(MqarTask(spread="uniform"), count=60_000)
    assert chisquare(torch.bincount(batch.slices[0])).pvalue > LUCKY
    for which, pairs in enumerate((4, 8, 16)):
        slot = (batch.positions[0, batch.slices[0] == which, 0] - 2 * pairs) // 2
        assert chisquare(torch.bincount(slot, minlength=32 - pairs)).pvalue > LUCKY
        assert len(torch.bincount(slot)) == 32 - pairs


def test_fingerprints_tell_sequences_apart_and_do_not_see_filler():
    plain, noisy = draw(MqarTask(pairs=(4,))), draw(MqarTask(pairs=(4,), filler="random"))
    assert not torch.equal(plain.tokens, noisy.tokens)
    assert torch.equal(plain.fingerprints, noisy.fingerprints)
    config = MqarTask(vocab=8, length=12, pairs=(3,))
    batch = draw(config, count=20_000)
    sequences = {tuple(t) for t in batch.tokens[0].tolist()}
    assert len(sequences) == len(batch.fingerprints.unique())
    assert len(sequences) < 0.55 * perm(3, 3) * perm(4, 3) * perm(3, 3)  # train holds half of them


@pytest.mark.parametrize("key", ["vocab", "length"])
def test_the_config_refuses_what_does_not_fit_the_hash(key):
    """Three fields of 20 bits share one integer of a fingerprint."""
    assert MqarTask(**{key: 2**20, "pairs": (1,)}).space() > 0
    with pytest.raises(ValueError, match="1048576"):
        MqarTask(**{key: 2**20 + 2, "pairs": (1,)})

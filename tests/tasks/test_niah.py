"""Where needles stand, what fills a haystack, and how keys, values and places are drawn."""

from itertools import combinations, permutations, product

import pytest
import torch
from scipy.stats import chisquare

from mclab.config.task import NiahTask
from mclab.config.task.niah import PRESETS
from mclab.config.task.niah import sequences as space_of
from mclab.tasks import Role, niah
from mclab.tasks.haystack import SENTENCE
from mclab.tasks.stream import sample_keys
from tests.tasks.cases import CASES, make, sequences
from tests.tasks.readers import ASK, items

LUCKY = 1e-3  # the data is fixed, so a test at this level passes always or never
NIAH = [name for name in CASES if CASES[name].name == "niah"]
HAND = "w0 w1 w2 KEY k12 IS 7 8 1 6 2 8 0 w3 w0 w4 ASK k12 7 8 1 6 2 8"
each_case = pytest.mark.parametrize("name", NIAH)


def draw(config: NiahTask, count: int, split: str = "train") -> torch.Tensor:
    return niah.batch(config, [0], split, 0, count, "cpu").tokens[0]


def test_a_sequence_that_can_be_checked_by_hand():
    config = NiahTask(length=24, depth=(50,))
    batch = niah.batch(config, [0], "valid", 0, 1, "cpu")
    words = " ".join(niah.token_name(config, token) for token in batch.tokens[0, 0].tolist())
    assert words == HAND
    assert batch.positions.tolist() == [[[17, 18, 19, 20, 21, 22, 23]]]
    assert [niah.token_name(config, token) for token in batch.answers[0, 0].tolist()] == HAND.split()[6:13]
    m, k, v, q, a, f = Role.MARK, Role.KEY, Role.VALUE, Role.QUERY, Role.ANSWER, Role.FILLER
    assert niah.roles(config, batch).tolist() == [[[f] * 3 + [m, k, m] + [v] * 7 + [f] * 3 + [m, q] + [a] * 6]]


@each_case
def test_a_needle_of_the_key_asked_first_stands_where_the_depth_says(name):
    config = CASES[name]
    seen = set()
    for tokens, _, which in sequences(make(name, split="test", count=60)):
        asked = tokens.index(ASK) + 1
        parts = items(tokens[: asked - 1])
        width = len(next(part for part in parts if isinstance(part, tuple))[0])
        key = tuple(tokens[asked : asked + width])
        stands = [at for at, part in enumerate(parts) if isinstance(part, tuple) and part[0] == key]
        place = (len(parts) - 1) * config.depth[which] / 100
        assert any(abs(at - place) <= 0.5 for at in stands)
        seen.add(config.depth[which])
    assert seen == set(config.depth)


def test_depth_0_and_100_are_the_first_and_the_last_place():
    for preset in ("niah1", "niah2", "niah3"):
        for depth, ends in ((0, slice(0, 1)), (100, slice(-1, None))):
            for tokens in draw(NiahTask(preset=preset, depth=(depth,)), 20, "test").tolist():
                assert isinstance(items(tokens[: tokens.index(ASK)])[ends][0], tuple)


@pytest.mark.parametrize("name", ["niah", "mk1", "mv", "mq", "mk2", "niah full"])
def test_in_training_every_place_is_asked_alike_often(name):
    """The needles of the key asked first stand at each place as often as any do, whatever depths are tested."""
    config = CASES[name]
    tokens = draw(config, 4000)
    asked = torch.zeros(config.places, dtype=torch.int64)
    for line in tokens.tolist():
        end = line.index(ASK)
        parts, key = items(line[:end]), (line[end + 1],)
        asked[[at for at, part in enumerate(parts) if isinstance(part, tuple) and part[0] == key]] += 1
    assert asked.sum() == 4000 * config.shape.values
    assert chisquare(asked).pvalue > LUCKY


@each_case
def test_a_haystack_holds_the_needles_that_it_should_and_nothing_else_but_words(name):
    config = CASES[name]
    shape = config.shape
    for tokens, *_ in sequences(make(name, count=30)):
        parts = items(tokens[: tokens.index(ASK)])
        needles = [part for part in parts if isinstance(part, tuple)]
        values = {key: [value for own, value in needles if own == key] for key, _ in needles}
        if shape.haystack == "needles":
            assert len(parts) - len(needles) < shape.values * (2 + len(needles[0][0]) + len(needles[0][1]))
            assert len(values) > shape.needles or name.endswith("least")
        else:
            assert len(values) == shape.needles
        assert {len(found) for found in values.values()} == {shape.values}
        assert len({value for _, value in needles}) == len(needles)
        assert {len(key) for key in values} == {1 if shape.key == "word" else 32}
        assert {len(value) for _, value in needles} == {7 if shape.value == "number" else 32}
        assert tokens.count(ASK) == shape.asked
        filler = [part for part in parts if not isinstance(part, tuple)]
        if shape.haystack != "text":
            assert [word - 19 for word in filler] == [SENTENCE[at % 12] for at in range(len(filler))]
        if filler and shape.key == "word":
            assert max(filler) < min(key[0] for key in values)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_smallest_length_works_and_has_no_filler(preset):
    least = {"niah1": 18, "niah2": 18, "niah3": 68, "mk1": 48, "mk2": 48, "mk3": 328, "mv": 69, "mq": 75}[preset]
    config = NiahTask(preset=preset, length=least)
    batch = niah.batch(config, [0], "train", 0, 20, "cpu")
    assert not (niah.roles(config, batch) == Role.FILLER).any()
    with pytest.raises(ValueError, match=f"take {least}"):
        NiahTask(preset=preset, length=least - 1)


def test_keys_values_and_places_are_uniform():
    """mq on 43 tokens, 16 of them keys: 13 places, the first key's is the fifth."""
    config = NiahTask(preset="mq", vocab=43, length=84, depth=(33,))
    samples = sample_keys("x", [0], 0, 40_000, torch.device("cpu")).flatten()
    first, attempt = torch.full((40_000, 1), config.place(33)), torch.zeros(1, dtype=torch.int64)
    core = niah._core(config, samples, first, attempt)
    anywhere = niah._core(config, samples, None, attempt)
    assert torch.equal(core.values, anywhere.values)
    for needle in range(4):
        assert chisquare(torch.bincount(anywhere.places[:, needle], minlength=13)).pvalue > LUCKY
    keys = core.keys[..., 0] - 27
    counts = torch.bincount(keys[:, 0] * 16 + keys[:, 1], minlength=256).view(16, 16)
    assert not counts.diagonal().any()
    assert chisquare(counts[~torch.eye(16, dtype=torch.bool)]).pvalue > LUCKY
    for needle in range(4):
        for digit in range(7):
            assert chisquare(torch.bincount(core.values[:, needle, digit] - 3, minlength=10)).pvalue > LUCKY
    joint = core.values[:, 0, 0] * 10 + core.values[:, 1, 6] - 33
    assert chisquare(torch.bincount(joint, minlength=100)).pvalue > LUCKY
    assert config.places == 13
    assert (core.places[:, 0] == 4).all()
    for needle in range(1, 4):
        counts = torch.bincount(core.places[:, needle], minlength=13)
        assert counts[4] == 0
        assert chisquare(counts[[*range(4), *range(5, 13)]]).pvalue > LUCKY


def test_uuids_are_uniform():
    config = NiahTask(preset="mk3", length=328)
    tokens = draw(config, 500)
    digits = tokens[:, 1:33]  # the first needle's key: there is no filler
    assert chisquare(torch.bincount(digits.flatten() - 3, minlength=16)).pvalue > LUCKY


def test_equal_sequences_have_equal_fingerprints_and_others_do_not():
    config = NiahTask(preset="mv", length=200, needles=3, values=2, asked=2)
    generator = torch.Generator().manual_seed(0)
    keys = torch.randint(50, 64, (1, 3, 1), generator=generator)
    values = torch.randint(3, 13, (1, 6, 7), generator=generator)
    places = torch.tensor([[5, 1, 9, 7, 30, 2]])

    def print_of(k=(0, 1, 2), n=(0, 1, 2, 3, 4, 5), moved=places, other=values):
        return niah.fingerprint(config, keys[:, k], other[:, n], moved[:, n]).item()

    assert print_of(n=(1, 0, 2, 3, 5, 4)) == print_of()  # a key's needles in another order
    assert print_of(k=(1, 0, 2), n=(2, 3, 0, 1, 4, 5)) != print_of()  # the question in another order
    assert print_of(k=(0, 2, 1), n=(0, 1, 4, 5, 2, 3)) != print_of()  # another key asked
    assert print_of(n=(0, 2, 1, 3, 4, 5)) != print_of()  # values that change owners
    assert print_of(moved=places + (places == 30)) != print_of()
    assert print_of(other=values.flip(-1)) != print_of()
    mk = NiahTask(preset="mk1")
    one, other = ([0, 1, 2, 3], [0, 3, 1, 2])  # keys that are not asked, in another order
    prints = [
        niah.fingerprint(mk, torch.arange(50, 54).view(1, 4, 1)[:, o], values[:, :4][:, o], places[:, :4][:, o]).item()
        for o in (one, other)
    ]
    assert prints[0] == prints[1]


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 1, 1), (3, 1, 1), (3, 1, 2), (1, 3, 1), (2, 2, 1), (2, 2, 2)])
def test_the_space_is_counted_exactly(counts):
    """Against every way to fill 5 places, the first needle at the third: 3 keys, values that are all different."""
    n, m, a = counts
    values = 4 if n * m == 4 else 3
    found = set()
    for keys, places in product(permutations(range(3), n), permutations((0, 1, 3, 4), n * m - 1)):
        for held in permutations(range(values), n * m):
            needles = frozenset((keys[i // m], held[i], (2, *places)[i]) for i in range(n * m))
            found.add((needles, keys[:a]))
    assert space_of(3, values, 5, counts) == len(found)


def test_every_sequence_differs():
    for name in ("niah", "mk1", "mq", "mk2"):
        batch = make(name, seeds=(0, 1), count=300)
        assert len(batch.fingerprints.unique()) == 600
    for one, other in combinations(("niah1", "niah2"), 2):  # the haystack is no part of it
        assert torch.equal(make(one).fingerprints, make(other).fingerprints)

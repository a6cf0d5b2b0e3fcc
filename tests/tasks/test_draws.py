"""Draws without replacement: always distinct, every order alike likely, weights as asked."""

from itertools import permutations

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from mclab.tasks import draws
from mclab.tasks.draws import distinct, power_costs, race, words_for
from mclab.tasks.stream import fork, sample_keys, words

CPU = torch.device("cpu")
LUCKY = 1e-3


def stream(rows: int, count: int) -> Tensor:
    return words(fork(sample_keys("test", [0], 0, rows, CPU).flatten(), torch.tensor([1])).flatten(), count)


def draw(rows: int, count: int, sizes: tuple[int, ...]) -> Tensor:
    return distinct(stream(rows, len(sizes) * words_for(sizes)).view(rows, len(sizes), -1), count, sizes)


def orders(drawn: Tensor, size: int) -> Tensor:
    """How often each ordered draw of [rows, count] came, of all that can come."""
    count = drawn.shape[-1]
    codes = (drawn * size ** torch.arange(count)).sum(-1)
    possible = [sum(v * size**i for i, v in enumerate(order)) for order in permutations(range(size), count)]
    seen = torch.bincount(codes, minlength=size**count)
    assert seen[possible].sum() == len(drawn)  # nothing else came
    return seen[possible]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 63, 64, 65, 66, 67, 71, 97, 128, 251, 1000, 4095, 4096])
def test_a_full_draw_is_a_permutation(size):
    full = draw(20, size, (size,))[:, 0]
    assert torch.equal(full.sort(-1).values, torch.arange(size).expand(20, -1))


@pytest.mark.parametrize(("small", "large"), [(31, 32), (64, 65), (65, 67), (80, 130), (4095, 4096)])
def test_two_sizes_are_drawn_side_by_side(small, large):
    both = draw(50, small, (small, large))
    assert torch.equal(both[:, 0].sort(-1).values, torch.arange(small).expand(50, -1))
    assert (both[:, 1] < large).all()
    assert (both[:, 1].sort(-1).values.diff() > 0).all()
    assert both[:, 1].max() == large - 1  # the larger side reaches its own end


@pytest.mark.parametrize("sides", [(10, 10), (34, 2), (2, 67)])
def test_long_walks_outside_end_inside(monkeypatch, sides):
    monkeypatch.setattr(draws, "_sides", lambda size: sides)
    full = draw(300, 67, (67,))[:, 0]
    assert torch.equal(full.sort(-1).values, torch.arange(67).expand(300, -1))


@pytest.mark.parametrize("size", [65, 100, 1000, 4095, 5000, 49_999, 2**19])
def test_rectangles_are_even_on_the_left_and_hardly_larger_than_asked(size):
    left, right = draws._sides(size)
    assert left % 2 == 0
    assert size <= left * right < size * 1.05


@pytest.mark.parametrize("race_up_to", [0, 64])
def test_every_order_of_a_small_set_is_alike_likely(monkeypatch, race_up_to):
    monkeypatch.setattr(draws, "_RACE_UP_TO", race_up_to)  # 0: the permutation, odd orders included
    assert chisquare(orders(draw(120_000, 5, (5,))[:, 0], 5)).pvalue > LUCKY


@pytest.mark.parametrize("size", [66, 72, 101])
def test_pairs_of_a_permutations_images_are_uniform(size):
    """Far-apart and same-column inputs: where too few rounds show first."""
    _, right = draws._sides(size)
    images = draw(100_000, right + 2, (size,))[:, 0]
    for other in (1, right, right + 1):
        difference = (images[:, other] - images[:, 0]) % size
        counts = torch.bincount(difference, minlength=size)
        assert counts[0] == 0
        assert chisquare(counts[1:]).pvalue > LUCKY


@pytest.mark.parametrize(("sides", "rounds"), [((512, 512), 4), ((64, 64), 6), ((20, 25), 10), ((6, 11), 14)])
def test_small_sides_take_more_rounds(sides, rounds):
    assert draws._rounds(*sides) == rounds


def test_too_few_rounds_would_be_seen(monkeypatch):
    monkeypatch.setattr(draws, "_rounds", lambda left, right: 4)
    _, right = draws._sides(101)
    images = draw(100_000, right + 2, (101,))[:, 0]
    counts = torch.bincount((images[:, 1] - images[:, 0]) % 101, minlength=101)
    assert chisquare(counts[1:]).pvalue < 1e-9


def test_a_race_draws_by_weight_without_replacement():
    size, costs = 6, power_costs(6, "0.99", CPU)
    drawn = race(stream(200_000, size), 2, costs)
    weight = [1 / g**0.99 for g in range(1, size + 1)]
    total = sum(weight)
    expected = [200_000 * weight[a] / total * weight[b] / (total - weight[a]) for a, b in permutations(range(size), 2)]
    assert chisquare(orders(drawn, size), expected, sum_check=False).pvalue > LUCKY


@pytest.mark.parametrize("size", [28, 384, 2048])  # shifts of 0, 2 and 6 bits to make room for the number
def test_the_first_of_a_long_race_has_the_exact_weights(size):
    rows = 100_000 if size < 1000 else 20_000
    first = torch.cat([race(part, 1, power_costs(size, "0.99", CPU)) for part in stream(rows, size).split(5000)])
    weight = torch.arange(1, size + 1, dtype=torch.float64) ** -0.99
    expected = rows * weight / weight.sum()
    assert chisquare(torch.bincount(first.flatten(), minlength=size), expected).pvalue > LUCKY


def test_a_limit_keeps_the_rest_of_the_field_out():
    limits = torch.tensor([[3], [7], [20]]).repeat(500, 1)
    drawn = race(stream(1500, 20), 3, power_costs(20, "0.99", CPU), limits)
    assert (drawn < limits).all()
    assert (drawn.sort(-1).values.diff() > 0).all()
    assert drawn.view(500, 3, 3)[:, 0].sort(-1).values.tolist() == [[0, 1, 2]] * 500


def test_equal_times_go_to_the_lower_number_on_every_device():
    assert race(torch.zeros(1, 40, dtype=torch.int32), 5).tolist() == [[0, 1, 2, 3, 4]]


def test_the_tables_hold_logs_and_powers():
    levels, drops = draws._log_table(CPU)
    u = torch.arange(1, 4097, dtype=torch.float64) / 4096
    levels, drops = levels.double(), drops.double()
    assert ((levels - drops) / 2**26 + u.log()).abs().max() < 2**-25
    assert torch.equal(levels[1:], (levels - drops)[:-1])
    mean = ((levels - drops / 2) / 2**26).mean()
    assert abs(mean - 1) < 1e-4  # an exponential time's, the cell that reaches to infinity included
    g = torch.arange(1, 501, dtype=torch.float64)
    assert (power_costs(500, "0.99", CPU).double() / 2**16 - g**0.99).abs().max() < 2**-16

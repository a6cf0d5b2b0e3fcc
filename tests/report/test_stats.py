"""Numbers worked by hand or read from printed tables."""

from math import sqrt

import pytest

from mclab.report.stats import Spread, holm, paired, spread


def test_t_interval_against_the_printed_table():
    # mean 3, std sqrt(2.5), t(0.975, 4) = 2.776 in every printed table
    got = spread([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (got.n, got.mean, got.min, got.max) == (5, 3.0, 1.0, 5.0)
    assert got.std == pytest.approx(sqrt(2.5))
    half = 2.776 * sqrt(2.5) / sqrt(5)
    assert (got.lo, got.hi) == (pytest.approx(3 - half, abs=1e-3), pytest.approx(3 + half, abs=1e-3))


def test_two_values_take_the_cauchy_quantile():
    got = spread([0.0, 1.0])  # t(0.975, 1) = 12.706, std / sqrt(2) = 0.5
    assert got.hi == pytest.approx(0.5 + 12.706 * 0.5, abs=1e-3)


def test_level():
    assert spread([0.0, 2.0], level=0.5).hi == pytest.approx(2.0)  # t(0.75, 1) = 1


def test_none_and_one_value():
    assert spread([]) == Spread()
    assert spread([0.7]) == Spread(1, 0.7, min=0.7, max=0.7)


def test_equal_values_have_an_interval_of_no_width():
    got = spread([0.1] * 5)
    assert (got.mean, got.std, got.lo, got.hi) == (0.1, 0.0, 0.1, 0.1)


def test_paired_by_hand():
    # gaps 0.1, 0.2, 0.3: mean 0.2, std 0.1, t = 0.2 / (0.1 / sqrt(3)) = 2 sqrt(3), 2 degrees of freedom.
    # P(|T| > t) = 1 - t / sqrt(t^2 + 2) for 2 degrees of freedom; t(0.975, 2) = 4.303.
    got = paired({0: 0.6, 1: 0.8, 2: 1.0}, {0: 0.5, 1: 0.6, 2: 0.7})
    t = 2 * sqrt(3)
    assert (got.n, got.kind) == (3, "tested")
    assert (got.mean, got.std) == (pytest.approx(0.2), pytest.approx(0.1))
    assert got.p == pytest.approx(1 - t / sqrt(t * t + 2))
    assert got.hi - got.mean == pytest.approx(4.303 * 0.1 / sqrt(3), abs=1e-4)
    assert got.mean - got.lo == pytest.approx(got.hi - got.mean)


def test_the_sign_turns_with_the_sides():
    one, other = {0: 0.6, 1: 0.8, 2: 1.0}, {0: 0.5, 1: 0.6, 2: 0.7}
    there, back = paired(one, other), paired(other, one)
    assert (back.mean, back.p) == (pytest.approx(-there.mean), pytest.approx(there.p))
    assert (back.lo, back.hi) == (pytest.approx(-there.hi), pytest.approx(-there.lo))


def test_a_seed_that_one_side_lacks_is_left_out():
    got = paired({0: 0.6, 1: 0.8, 2: 1.0, 3: 0.0}, {0: 0.5, 1: 0.6, 2: 0.7, 4: 1.0})
    assert (got.n, got.mean) == (3, pytest.approx(0.2))


def test_equal_pairs_are_the_same_and_have_no_p():
    got = paired({0: 0.5, 1: 0.6, 2: 0.1 + 0.2}, {0: 0.5, 1: 0.6, 2: 0.3})
    assert (got.kind, got.n, got.mean, got.p, got.lo, got.hi) == ("same", 3, 0.0, None, None, None)
    assert paired({0: 0.5}, {0: 0.5}).kind == "same"


def test_a_constant_difference_is_never_p_zero():
    # the gaps differ by rounding alone: 0.2 and 0.20000000000000007
    got = paired({0: 0.9, 1: 0.8, 2: 0.5}, {0: 0.7, 1: 0.6, 2: 0.3})
    assert (got.kind, got.n, got.p, got.lo, got.hi) == ("constant", 3, None, None, None)
    assert got.mean == pytest.approx(0.2)


def test_the_smallest_real_variation_is_tested():
    step = 1e-6  # one answer of a million
    assert paired({0: 0.9, 1: 0.9, 2: 0.9 + step}, {0: 0.7, 1: 0.7, 2: 0.7}).kind == "tested"


@pytest.mark.parametrize(("n", "mean"), [(0, None), (1, 0.1), (2, 0.1)])
def test_fewer_than_three_pairs_have_no_test(n, mean):
    got = paired(dict.fromkeys(range(n), 0.6), dict.fromkeys(range(n), 0.5))
    assert (got.kind, got.n, got.p, got.lo) == ("few", n, None, None)
    assert got.mean == (None if mean is None else pytest.approx(mean))


def test_holm_by_hand():
    # sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 = 0.02, 0.03, 0.06, 0.04; the last may not fall below 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_stops_at_one_and_keeps_ties_equal():
    assert holm([0.6, 0.6]) == [1.0, 1.0]
    assert holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])
    assert holm([]) == []


def test_a_row_without_p_counts_in_the_family():
    assert holm([0.01, None, 0.04]) == [pytest.approx(0.03), None, pytest.approx(0.08)]


def test_the_designs_rule_of_thumb():
    # "under Holm with 4 rows n = 5 needs |t| 4.3": two-sided 0.05 / 4 at 4 degrees of freedom
    gaps = [1.0, 2.0, 3.0, 4.0, 5.0]
    shift = 4.31 * sqrt(2.5) / sqrt(5) - 3.0
    p = paired({i: g + shift for i, g in enumerate(gaps)}, dict.fromkeys(range(5), 0.0)).p
    assert holm([p, 1.0, 1.0, 1.0])[0] == pytest.approx(0.05, abs=5e-4)

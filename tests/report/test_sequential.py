"""The rule of seeds until told: Holm within a look, even, giving up, and how many seeds would tell."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.sequential import PROCEDURES, simulate
from mclab.plan.seeds import Until
from mclab.report.sequential import gap_of, look, needed, power_of, seeds_to_tell

RULE = Until(step=1e-4)


def around(mean, std, n):
    """Differences with exactly this mean and sample standard deviation."""
    values = np.random.default_rng(n).normal(size=n)
    return list((values - values.mean()) / values.std(ddof=1) * std + mean)


def p_of(t, n):
    return 2 * stats.t.sf(t, n - 1)


def test_p_and_interval_are_those_of_a_paired_t_test():
    values = [0.03, 0.05, 0.02, 0.06, 0.01]
    gap = gap_of(values, 0.003, 0.0)
    assert gap.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    low, high = stats.t.interval(1 - 0.003, 4, np.mean(values), stats.sem(values))
    assert (gap.lo, gap.hi) == pytest.approx((low, high))


def test_equal_differences_are_no_more_certain_than_the_resolution():
    assert gap_of([0.01] * 5, 0.003, 0.002).std == 0.001
    assert 0 < gap_of([0.01] * 5, 0.003, 0.002).p < 1e-4
    assert gap_of([0.0] * 5, 0.003, 0.002).p == 1.0


def test_a_row_is_told_by_its_share_divided_over_the_rows_that_are_left():
    """Two rows at p 0.0012: 0.003 / 2 tells the first, which leaves 0.003 to the second; alone in three, neither."""
    t = stats.t.isf(0.0012 / 2, 4)
    gaps = {"a": around(t / 5**0.5, 1, 5), "b": around(-t / 5**0.5, 1, 5), "c": around(0.1, 1, 5)}
    assert [each.state for each in look(gaps, RULE, 2).values()] == ["better", "worse", "open"]
    assert {each.state for each in look(gaps, RULE, 3).values()} == {"open"}
    assert [each.state for each in look(gaps, RULE, 3, told=1).values()] == ["better", "worse", "open"]
    assert look(gaps, RULE, 2)["a"].p == pytest.approx(0.0024)
    assert look(gaps, RULE, 2)["a"].share == 0.003


def test_each_look_has_its_share():
    for n, share in zip(RULE.looks, RULE.shares, strict=True):
        for p, state in ((share * 0.99, "better"), (share * 1.01, "open")):
            mean = stats.t.isf(p / 2, n - 1) / n**0.5
            assert look({"a": around(mean, 1, n)}, RULE, 1)["a"].state == state
    with pytest.raises(ValueError, match="the looks are at 5, 8, 12, 16, 20"):
        look({"a": around(1, 1, 6)}, RULE, 1)


def test_a_held_row_stays_open_and_stays_counted():
    gaps = {"a": around(10, 1, 5), "b": around(stats.t.isf(0.001, 4) / 5**0.5, 1, 5)}
    assert [each.state for each in look(gaps, RULE, 2).values()] == ["better", "better"]
    assert [each.state for each in look(gaps, RULE, 2, held={"a"}).values()] == ["open", "open"]


def test_even_is_a_matter_of_the_margin_and_never_without_one():
    gaps = {"a": around(0.001, 0.002, 12)}
    assert look(gaps, Until(even=0.02), 3)["a"].state == "even"
    assert look(gaps, Until(even=0.002), 3)["a"].state != "even"
    assert look({"a": around(0.0002, 0.002, 12)}, RULE, 3)["a"].state == "not separable"
    bound = stats.t.isf(0.007, 11) * 0.002 / 12**0.5 + 0.001
    assert look(gaps, Until(even=bound * 1.001), 3)["a"].state == "even"
    assert look(gaps, Until(even=bound * 0.999), 3)["a"].state != "even"


def test_rows_are_given_up_at_12_and_16_seeds_alone_and_by_what_they_can_still_become():
    for n, state in ((5, "open"), (8, "open"), (12, "not separable"), (16, "not separable"), (20, "open")):
        assert look({"a": around(0.0, 1, n)}, RULE, 5)["a"].state == state
    assert look({"a": around(0.8, 1, 12)}, RULE, 5)["a"].state == "open"


def test_the_seeds_that_would_tell_have_the_power_that_they_promise():
    for effect in (0.3, 1.0, 2.0):
        n = needed(effect, 0.024 / 3)
        draws = np.random.default_rng(1).normal(effect, 1, (4000, n))
        told = (stats.ttest_1samp(draws, 0, axis=1).pvalue <= 0.024 / 3).mean()
        assert told == pytest.approx(power_of(effect, n, 0.024 / 3), abs=0.02)
        assert power_of(effect, n, 0.024 / 3) >= 0.8 > power_of(effect, n - 1, 0.024 / 3)
    assert needed(0.0, 0.05) is None


def test_about_so_many_seeds_and_more_to_be_safe():
    about, safe = seeds_to_tell(gap_of(around(1.0, 1.0, 5), 0.003, 0.0), 0.024, 3)
    assert about == needed(0.7979, 0.008)  # Hedges' factor of five pairs
    t = 5**0.5
    low = next(d for d in np.arange(0, 2, 0.001) if stats.nct.sf(t, 4, d * 5**0.5) >= 0.2)
    assert safe == pytest.approx(needed(low, 0.008), abs=1)
    assert seeds_to_tell(gap_of(around(0.1, 1.0, 5), 0.003, 0.0), 0.024, 3)[1] is None
    assert seeds_to_tell(gap_of([0.0] * 5, 0.003, 0.0), 0.024, 3) == (None, None)


@pytest.mark.parametrize("shape", ["normal", "skewed", "bimodal"])
def test_equal_cells_are_told_apart_in_at_most_six_of_a_hundred_grids(shape):
    """Simulated with a shared baseline; in full: python -m benchmarks sequential."""
    found = [simulate(PROCEDURES["until told"], shape, rows, 0.0, 200, seed=rows) for rows in (2, 5, 10)]
    assert all(each.any <= 0.06 for each in found)
    assert sum(each.any for each in found) > 0.01  # it is no test that never tells


def test_looking_again_without_correction_does_not_keep_the_error():
    assert simulate(PROCEDURES["Holm at every look, not corrected"], "normal", 5, 0.0, 200).any > 0.09


def test_true_differences_are_told_with_fewer_seeds():
    """Of one standard deviation in nine of ten rows, of two with half of the seeds of a fixed plan."""
    one, two = (simulate(PROCEDURES["until told"], "normal", 5, effect, 150) for effect in (1.0, 2.0))
    assert one.each > 0.85
    assert one.seeds < 17
    assert two.each > 0.99
    assert two.seeds < 10

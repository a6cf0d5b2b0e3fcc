"""The power of a plan: of fixed seeds, of seeds until told, and where the standard deviation comes from."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.sequential import sequential
from mclab.plan.seeds import Until
from mclab.report.power import Simulated, plan_power
from tests.report.plans import gates

BASE = [0.80, 0.81, 0.79, 0.80, 0.82]


def nothing(name):
    return None


def simulated(effect, n, alpha):
    draws = np.random.default_rng(3).normal(effect, 1, (20_000, n))
    return (stats.ttest_1samp(draws, 0, axis=1).pvalue <= alpha).mean()


def test_the_power_of_fixed_seeds_is_that_of_a_paired_test_with_the_error_divided_over_rows():
    plan, _ = gates(BASE, BASE, BASE)
    found = plan_power(plan, nothing, effect=0.05, sd=0.03)
    assert (found.rows, found.seeds, found.stored) == (2, None, None)
    assert found.power == pytest.approx(simulated(0.05 / 0.03, 5, 0.025), abs=0.01)
    assert simulated(found.least[0.8] / 0.03, 5, 0.025) == pytest.approx(0.8, abs=0.01)
    assert simulated(found.least[0.9] / 0.03, 5, 0.025) == pytest.approx(0.9, abs=0.01)


def test_the_power_of_a_sequential_plan_is_that_of_the_rule():
    """One row of three differs, so that Holm divides by three from the first look to the last."""
    power, seeds = Simulated(Until(), 3).of(1.0)
    rng, found = np.random.default_rng(5), []
    for _ in range(600):
        gaps = np.stack([rng.normal(1.0, 1, 20), rng.normal(0, 1e9, 20), rng.normal(0, 1e9, 20)])
        found.append(sequential(gaps, Until())[0] > 0)
    assert power == pytest.approx(np.mean(found), abs=0.05)
    assert 10 < seeds < 18
    assert Simulated(Until(), 3).of(2.0)[1] < 10
    assert Simulated(Until(), 3).of(0.0)[0] < 0.01


def test_the_largest_of_the_stored_deviations_is_taken():
    rows = [BASE, [0.7, 0.75, 0.72, 0.68, 0.74], [0.80, 0.82, 0.79, 0.81, 0.82]]
    plan, lookup = gates(*rows)
    found = plan_power(plan, lookup)
    deviations = [np.std(np.subtract(row, BASE), ddof=1) for row in rows[1:]]
    assert found.stored == pytest.approx((min(deviations), max(deviations)))
    assert found.sd == pytest.approx(max(deviations))
    assert (found.effect, found.power) == (None, None)
    assert plan_power(plan, nothing) is None
    more = plan_power(replace(plan, seeds=(*plan.seeds, 5, 6, 7)), lookup)
    assert more.least[0.8] < found.least[0.8] < found.least[0.9]

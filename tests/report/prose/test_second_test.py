"""The second test: on seeds where row and baseline both learned."""

import pytest

from mclab.report.prose.verdict import second_tests, verdict
from mclab.report.stats import paired
from mclab.report.table.summary import summarise
from tests.report.plans import gates
from tests.report.table.test_marks import measured

LINE = (
    "Second test, on the 6 of 8 seeds where both learned: input is 0.029 below context (95 % interval "
    "[-0.034, -0.024], Holm p < 0.001). It says how well they recall once they do, and nothing of how often."
)
#: The sixth seed of the one and the last of the other are at the 0.2 of a predictor without recall.
BASE = [0.80, 0.81, 0.79, 0.80, 0.82, 0.21, 0.80, 0.81]
ROW = [0.77, 0.78, 0.76, 0.78, 0.79, 0.78, 0.765, 0.20]


def test_a_shift_that_failures_hide_is_found_and_called_second():
    summary = summarise(*measured(*gates(BASE, ROW)))
    (found,) = second_tests(summary)
    kept = [seed for seed in range(8) if seed not in (5, 7)]
    alone = paired({seed: ROW[seed] for seed in kept}, {seed: BASE[seed] for seed in kept})
    assert (found.shared, found.difference.n) == (8, 6)
    assert found.difference.mean == pytest.approx(alone.mean)
    assert found.p == alone.p
    assert summary.rows[1].p > 0.5
    assert verdict(summary)[-1] == LINE


def test_holm_counts_all_second_tests():
    summary = summarise(*measured(*gates(BASE, ROW, [value - 0.01 * (seed % 3) for seed, value in enumerate(ROW)])))
    first, second = second_tests(summary)
    assert first.p == pytest.approx(2 * first.difference.p)
    assert second.p >= second.difference.p


@pytest.mark.parametrize(
    ("base", "row"),
    [
        (ROW[:5], ROW[1:6]),  # all learned: the first test says it
        ([*BASE[:2], 0.2, 0.2, 0.2], BASE[:5]),  # two pairs are left; the baseline is marked besides
        (BASE[:5], [0.77, 0.78, 0.2, 0.2, 0.2]),  # few started: no verdict of any kind
    ],
)
def test_no_second_test(base, row):
    summary = summarise(*measured(*gates(base, row)))
    assert second_tests(summary) == []
    assert not any(line.startswith("Second") for line in verdict(summary))

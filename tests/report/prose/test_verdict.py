"""Verdicts and notes."""

import pytest

from mclab.report.prose.advice import more_seeds
from mclab.report.prose.notes import alarms, notes
from mclab.report.prose.verdict import verdict
from mclab.report.table.summary import summarise
from tests.report.plans import GATE, SEGMENT, gates, make_plan, mapped, store

OVER = tuple({"train.lr": lr} for lr in (1e-3, 1e-2, 1e-1))


def say(*results, **more):
    return verdict(summarise(*gates(*results, **more)))


def test_a_difference_is_told_with_its_evidence():
    lines = say([0.90, 0.91, 0.92, 0.93, 0.94], [0.74, 0.76, 0.75, 0.77, 0.78])
    # gaps -0.16, -0.15, -0.17, -0.16, -0.16: mean -0.16, std 0.00707, half 2.776 * 0.00707 / sqrt(5) = 0.00878
    assert lines == ["input is 0.160 ± 0.007 below context (95 % interval [-0.169, -0.151], Holm p < 0.001, 5 seeds)."]


def test_what_cannot_be_told_apart_asks_for_seeds():
    lines = say([0.5, 0.6, 0.7, 0.8, 0.9], [0.6, 0.5, 0.8, 0.7, 0.95])
    assert lines[0].startswith("input cannot be told from context (Holm p = 0.")
    assert lines[1:] == ["More seeds may tell: --seeds 0..9"]


def test_identical_rows():
    assert say([0.5, 0.6, 0.7], [0.5, 0.6, 0.7]) == [
        "input is identical to context: equal accuracy and loss on every seed."
    ]


def test_a_constant_difference_is_told_without_p():
    (line,) = say([0.5, 0.6, 0.7], [0.25, 0.35, 0.45])
    assert line.startswith("input is 0.250 below context on each of 3 seeds; a t test cannot judge")


def test_two_seeds_are_no_test():
    lines = say([0.5, 0.6], [0.6, 0.8])
    assert lines == [
        "input is not tested: fewer than 3 seeds in common with context.",
        "More seeds may tell: --seeds 0..4",
    ]


def test_at_the_ceiling_seeds_do_not_help():
    lines = say([1.0, 1.0, 0.995], [1.0, 0.995, 1.0])
    assert [line.startswith("More seeds") for line in lines] == [False, False]
    assert "a harder task" in lines[-1]


def test_nothing_to_compare():
    assert say([0.5, 0.6, 0.7]) == []
    assert verdict(summarise(gates([0.5] * 3, [0.5] * 3)[0], {}.get)) == []


def test_many_rows_are_counted():
    plan = make_plan([{SEGMENT: size} for size in range(1, 12)])
    rows = [[0.9, 0.91, 0.92, 0.93, 0.94]] + [
        [base + 0.001 * (seed * (place + 2) % 5) for seed in range(5)]
        for place, base in enumerate([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.98, 0.8])
    ]
    lines = verdict(summarise(plan, store(plan, rows).get))
    assert lines[0] == "10 of 10 rows differ from 1 (Holm p < 0.05)."
    assert lines[1].startswith("Furthest above is 10, by 0.0")
    assert lines[2].startswith("Furthest below is 2, by 0.8")
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("seeds", "asked"), [((0,), "0..4"), ((0, 1, 2, 3, 4), "0..9"), ((3, 4, 5), "3..8"), ((0, 20), "0..20")]
)
def test_more_seeds_keeps_those_there_are(seeds, asked):
    assert more_seeds(seeds) == asked


def test_a_quiet_table_has_no_alarms():
    summary = summarise(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 0.9]))
    assert alarms(summary) == []
    text = "\n".join(notes(summary))
    assert "Seeds 0..2." in text
    assert "Holm-adjusted over 1 row." in text
    assert "Largest measured overlap of test with train: 0.00% of the test sequences." in text


def test_mixtures_are_said():
    plan, _ = gates([0.5, 0.6, 0.7])
    records = store(plan, [[0.5, 0.6, 0.7]])

    def change(old):
        late = old.seed == 2
        return {
            "science": 2 if late else 1,
            "overlap": 0.125 if late else None,
            "provenance": {
                "device": "cuda" if late else "cpu",
                "torch": "2.12.0" if late else "2.11.0",
                "python": "3.12.1" if late else "3.11.7",
            },
        }

    text = "\n".join(notes(summarise(plan, mapped(plan, records, change))))
    assert "Mixed devices: cpu (2 runs), cuda (1 run)." in text
    assert "Mixed torch versions: 2.11.0 (2 runs), 2.12.0 (1 run)." in text
    assert "Mixed Python versions: 3.11.7 (2 runs), 3.12.1 (1 run)." in text
    assert "Mixed science versions: 1 (2 runs), 2 (1 run)." in text
    assert "mclab versions" not in text
    assert "overlap of test with train: 12.50%" in text


def test_what_went_wrong_is_named():
    summary = summarise(*gates([0.5, 0.6, 0.7, 0.8, 0.9], ["diverged", "failed", "oom", None, None]))
    assert alarms(summary) == [
        "input, seed 0: diverged at step 120.",
        "input, seed 1: failed (out of luck).",
        "input, seed 2: oom.",
        "input: no record yet of seed 3, 4.",
        "Runs that failed or ran out of memory run again with --retry-failed.",
    ]


def test_an_edge_and_a_cell_that_waits():
    plan = make_plan([{GATE: "context"}, {GATE: "input"}], seeds=range(3), over=OVER)
    first = [[0.5, 0.5, None], [0.5, 0.5, None]]
    records = store(plan, first, 0) | store(plan, first, 1) | store(plan, [[0.9] * 3, [None] * 3], 2)
    lines = alarms(summarise(plan, records.get))
    assert lines == [
        "lr was chosen at the edge of its range in: context. Widen the range.",
        "input: no value is chosen yet (choosing: 4 done, 2 missing).",
    ]


def test_all_or_nothing_learning_is_said():
    (line,) = alarms(summarise(*gates([1.0, 1.0, 0.3])))
    assert line.startswith("context: 2 of 3 seeds solve the task, the lowest reaches 0.300; a t interval misleads")


def test_the_plans_own_words_are_kept():
    plan, lookup = gates([0.5], notes=("6 cells, 4 distinct",), warnings=("odd",))
    summary = summarise(plan, lookup)
    assert notes(summary)[-1] == "6 cells, 4 distinct"
    assert alarms(summary) == ["odd"]

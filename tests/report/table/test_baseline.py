"""What may be called equal, and what may be compared at all."""

from dataclasses import replace

import pytest

from mclab.report.prose.notes import notes
from mclab.report.prose.verdict import verdict
from mclab.report.table.columns import difference_text
from mclab.report.table.frames import cells_frame
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_table
from mclab.report.write import markdown
from tests.report.plans import GATE, gates, make_plan, mapped, store
from tests.stored import score, with_metrics


def gated(results, change):
    """A grid of two gates with `change(test)` applied to the test scores of the second one's records."""
    plan, _ = gates(results, results)
    second = set(plan.cells[1].candidates[0].run_ids().values())

    def changed(old):
        return {"test": change(old.test)} if old.run_id in second else {}

    return plan, mapped(plan, store(plan, [results, results]), changed)


def shifted(part, key, step):
    return lambda test: {**test, part: with_metrics(test[part], **{key: test[part].metrics[key] * (1 + step)})}


@pytest.mark.parametrize(
    ("part", "key", "step", "words"),
    [
        ("all", "loss", 0.0, "identical"),
        ("all", "loss", 0.9e-6, "identical"),
        ("all", "loss", 3e-6, "same accuracy"),
        ("pairs=4", "loss", 3e-6, "same accuracy"),
        ("pairs=8", "accuracy", 0.1, "same accuracy"),
    ],
)
def test_identical_wants_the_losses_and_every_slice(part, key, step, words):
    plan, lookup = gated([0.5, 0.6, 0.7], shifted(part, key, step))
    row = summarise(plan, lookup).rows[1]
    assert difference_text(row) == words
    assert (row.difference.mean, row.p) == (0.0, None)


def test_one_seed_with_another_loss_is_enough():
    plan, _ = gates([0.5, 0.6, 0.7], [0.5, 0.6, 0.7])
    records = store(plan, [[0.5, 0.6, 0.7]] * 2)
    last = plan.cells[1].candidates[0].run_ids()[2]
    test = records[last].test
    records[last] = replace(records[last], test={**test, "pairs=4": with_metrics(test["pairs=4"], loss=9.0)})
    assert difference_text(summarise(plan, records.get).rows[1]) == "same accuracy"


def test_a_loss_that_is_not_known_is_equal_to_none():
    plan, lookup = gated([0.5, 0.6, 0.7], lambda test: {**test, "all": score(test["all"].accuracy, None)})
    assert difference_text(summarise(plan, lookup).rows[1]) == "same accuracy"


def test_a_smoke_run_of_two_functions():
    plan, lookup = gated([0.0, 0.0, 0.0], shifted("all", "loss", 0.1))
    assert verdict(summarise(plan, lookup)) == ["input has the same accuracy as context on every seed."]
    assert any(line.startswith("same accuracy: ") for line in notes(summarise(plan, lookup)))


def test_two_functions_at_the_ceiling():
    plan, lookup = gated([1.0, 1.0, 1.0], lambda test: {**test, "all": score(1.0, 0.1)})
    summary = summarise(plan, lookup)
    assert verdict(summary) == [
        "input has the same accuracy as context on every seed, both at the ceiling.",
        "Where a row and the baseline both reach 0.99, a harder task or a smaller model may tell them apart.",
    ]
    assert difference_text(summary.rows[1]) == "same accuracy (ceiling)"


def sliced():
    parts = (([2, 4], "context"), ([2], "context"), ([2, 4], "input"), ([8], "context"))
    plan = make_plan([{"task.pairs": pairs, GATE: gate} for pairs, gate in parts], seeds=range(3))
    return plan, store(plan, [[0.5, 0.6, 0.7], [0.9, 0.9, 0.95], [0.6, 0.8, 1.0], [0.1, 0.1, 0.2]]).get


def test_other_slices_are_not_compared():
    plan, lookup = sliced()
    frame = cells_frame(plan, lookup)
    assert frame["diff_mean"].to_list() == [None, None, pytest.approx(0.2), None]
    for name in ("diff_lo", "diff_hi", "p", "ceiling"):
        assert [frame[name][1], frame[name][3]] == [None, None]
    # gaps 0.1, 0.2, 0.3: t = 2 sqrt(3), two degrees of freedom, p = 1 - t / sqrt(t^2 + 2) = 0.0742; m = 1
    assert frame["p"][2] == pytest.approx(1 - 12**0.5 / 14**0.5)


def test_other_slices_are_said():
    plan, lookup = sliced()
    summary = summarise(plan, lookup)
    assert [difference_text(row).split(" [")[0] for row in summary.rows[1:]] == [
        "other slices",
        "+0.200",
        "other slices",
    ]
    told = "pairs=2, gate=context and pairs=8, gate=context are not compared with pairs=2,4, gate=context: scored on"
    assert f"{told} other slices." in verdict(summary)
    assert told in " ".join(terminal_table(plan, lookup).split())
    assert "Holm-adjusted over 1 row." in markdown(summary)
    assert "other slices: the row has other slices than the baseline" in markdown(summary)


def test_no_row_with_the_baselines_slices():
    plan = make_plan([{"task.pairs": [2]}, {"task.pairs": [4]}], seeds=range(3))
    summary = summarise(plan, store(plan, [[0.5, 0.6, 0.7]] * 2).get)
    assert "Holm-adjusted" not in markdown(summary)
    assert verdict(summary) == ["4 is not compared with 2: scored on other slices."]


def test_a_row_that_diverged_throughout_is_not_sent_for_seeds():
    summary = summarise(*gates([0.0, 0.1, 0.3], ["diverged"] * 3))
    assert verdict(summary) == [
        "input cannot be told from context (Holm p = 0.270).",  # gaps 0, -0.1, -0.3: t = -1.512
        "input diverged in every run (accuracy 0): a lower learning rate may help, more seeds will not.",
    ]


def test_a_baseline_that_diverged_throughout():
    lines = verdict(summarise(*gates(["diverged"] * 3, ["diverged"] * 3, [0.0, 0.1, 0.3])))
    assert "context and input diverged in every run" in lines[1]
    assert len(lines) == 2


def test_one_diverged_seed_still_asks_for_seeds():
    lines = verdict(summarise(*gates([0.5, 0.6, 0.7], [0.6, "diverged", 0.8])))
    assert not any("in every run" in line for line in lines)
    assert lines[-1].startswith("More seeds may tell")


def test_equal_zeros_of_diverged_runs_are_no_identity():
    plan = make_plan([{GATE: "context"}, {GATE: "input"}], seeds=range(3))
    summary = summarise(plan, store(plan, [["diverged"] * 3] * 2).get)
    assert summary.rows[1].difference.kind == "lost"
    assert "both diverged" in markdown(summary)

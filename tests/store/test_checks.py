"""Figures that no run can have make a record damaged; what is let through can be tabled and drawn."""

import json

import pytest

from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.run import RunConfig
from mclab.plan.grid import plan_from
from mclab.report.plot.kinds import render
from mclab.report.table.frames import runs_frame
from mclab.report.table.summary import summarise
from mclab.report.terminal import terminal_table
from mclab.store.files import json_bytes
from mclab.store.record import read_record, record_of, signed

RUN = RunConfig(seed=0)
PARTS = (ALL, *RUN.task.slices)
DONE = Outcome("done", 600, {part: Score(0.5, 1.5) for part in PARTS}, {part: Score(0.25, 2.0) for part in PARTS})


def everywhere(accuracy, loss=1.0):
    """The same score on all slices and on each."""
    return {part: {"accuracy": accuracy, "loss": loss} for part in PARTS}


def edited(path, value):
    """A record's bytes with the value at the dotted path replaced."""
    record = json.loads(json_bytes(record_of(RUN, DONE)))
    *rooms, key = path.split(".")
    place = record
    for room in rooms:
        place = place[room]
    place[key] = value
    return json.dumps(signed(record)).encode(), record["run_id"]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("test.all.accuracy", 7.5, "has test all accuracy 7.5, not a number from 0 to 1"),
        ("test.pairs=4.accuracy", -0.01, "has test pairs=4 accuracy -0.01, not a number from 0 to 1"),
        ("valid.all.accuracy", 1.0000001, "not a number from 0 to 1"),
        ("test.all.accuracy", "0.5", "has test all accuracy '0.5', not a number from 0 to 1"),
        ("test.all.accuracy", None, "has test all accuracy None"),
        ("test.all.accuracy", True, "has test all accuracy True"),
        ("test.all.accuracy", float("nan"), "has test all accuracy nan"),
        ("test.all.token_accuracy", 1.5, "has test all token_accuracy 1.5, not a number from 0 to 1"),
        ("valid.pairs=4.token_accuracy", "x", "has valid pairs=4 token_accuracy 'x', not a number from 0 to 1"),
        ("test.all.value_accuracy", -1, "has test all value_accuracy -1, not a number from 0 to 1"),
        ("without_recall", {"all": {"bigram": 1.5}}, "not an object of objects of numbers from 0 to 1"),
        ("without_recall", {"all": {"bi\x1b[2Jgram": 0.5}}, "not an object of objects of numbers from 0 to 1"),
        ("without_recall", {"all": 0.5}, "has without_recall {'all': 0.5}, not an object of objects"),
        ("without_recall", [0.5], "has without_recall [0.5], not an object of objects"),
        ("test.all.loss", [1.0], "has test all loss [1.0], not a number"),
        ("test.all.loss", float("inf"), "has test all loss inf, not a number"),
        ("test.all", 0.5, "has test all 0.5, not an object"),
        ("test", None, "has test None, not an object"),
        ("valid", [], "has valid [], not an object"),
        ("steps", 1.5, "has steps 1.5, not a whole number"),
        ("steps", -1, "has steps -1, not a whole number"),
        ("params", 2**63, "not a whole number"),
        ("params", "many", "has params 'many', not a whole number"),
        ("steps_to_99", False, "has steps_to_99 False"),
        ("tokens_per_s", "fast", "has tokens_per_s 'fast', not a number"),
        ("wall_s", {}, "has wall_s {}, not a number"),
        ("overlap", 1.5, "has overlap 1.5, not a number from 0 to 1"),
        ("science", "x", "has science 'x', not a whole number"),
        ("error", 3, "has error 3, not text"),
        ("provenance", [], "has provenance [], not an object"),
        ("test.all.accuracy", 0.75, "has test all accuracy 0.75, and the mean of its slices is 0.25"),
        ("test.pairs=16.accuracy", 0.28, "has test all accuracy 0.25, and the mean of its slices is 0.26"),
        ("valid.pairs=4.loss", 0, "has valid all loss 1.5, and the mean of its slices is 1"),
        ("test", {}, "is done and has no score of test all"),
        ("valid", {}, "is done and has no score of valid all"),
        ("valid", {ALL: {"accuracy": 0.5}}, "is done and has no score of valid pairs=4"),
        ("test", {part: {"accuracy": 0.5} for part in PARTS[:-1]}, "is done and has no score of test pairs=16"),
    ],
)
def test_refused(path, value, reason):
    with pytest.raises(ValueError, match="has ") as caught:
        read_record(*edited(path, value))
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 120


LET_THROUGH = [
    *(("test", everywhere(value)) for value in (0, 1, 0.0, 1.0, 5e-324, 1 - 2**-53)),
    ("test", everywhere(0.3, 1e308)),
    ("test", everywhere(0.3) | {"length=128": {"accuracy": 1.0}}),
    ("test", {part: {"accuracy": 0.5} for part in PARTS}),
    ("test.all.accuracy", 0.25 + 1e-12),
    ("test.all.loss", None),
    ("test.pairs=4.loss", None),
    ("test.all.extra", 3),
    *((key, None) for key in ("steps", "params", "overlap", "wall_s", "tokens_per_s", "provenance", "error")),
    ("params", 2**63 - 1),
    ("wall_s", -1e300),
    ("provenance", {"torch": None}),
    ("provenance", {"torch": 2.5, "device": ["cpu"], "mclab": {"a": 1}}),
    *(("status", status) for status in ("diverged", "pruned", "oom", "failed")),
]


@pytest.mark.parametrize(("path", "value"), LET_THROUGH)
@pytest.mark.parametrize(("key", "values"), [("gate", ("context", "input", "none")), ("segment", (4, 8, 16))])
def test_what_is_let_through_is_tabled_and_drawn(path, value, key, values):
    odd = read_record(*edited(path, value))
    plan = plan_from({"grid": {f"model.mixer.{key}": list(values)}, "seeds": "0..2"}, "g")
    plain = read_record(*edited("steps", 600))
    first = plan.cells[1].candidates[0].run_ids()[0]
    records = {
        run: odd if run == first else plain for cell in plan.cells for run in cell.candidates[0].run_ids().values()
    }
    terminal_table(plan, records.get)
    runs_frame(plan, records.get)
    assert render(summarise(plan, records.get), "svg")

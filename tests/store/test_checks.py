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
        ("test.all.accuracy", 7.5, "has 7.5 for test all accuracy, which must be a number from 0 to 1"),
        ("test.pairs=4.accuracy", -0.01, "has -0.01 for test pairs=4 accuracy, which must be a number from 0 to 1"),
        ("valid.all.accuracy", 1.0000001, "must be a number from 0 to 1"),
        ("test.all.accuracy", "0.5", "has '0.5' for test all accuracy, which must be a number from 0 to 1"),
        ("test.all.accuracy", None, "has None for test all accuracy"),
        ("test.all.accuracy", True, "has True for test all accuracy"),
        ("test.all.accuracy", float("nan"), "has nan for test all accuracy"),
        ("test.all.token_accuracy", 1.5, "has 1.5 for test all token_accuracy, which must be a number from 0 to 1"),
        (
            "valid.pairs=4.token_accuracy",
            "x",
            "has 'x' for valid pairs=4 token_accuracy, which must be a number from 0 to 1",
        ),
        ("test.all.value_accuracy", -1, "has -1 for test all value_accuracy, which must be a number from 0 to 1"),
        ("without_recall", {"all": {"bigram": 1.5}}, "must be an object of objects of numbers from 0 to 1"),
        ("without_recall", {"all": {"bi\x1b[2Jgram": 0.5}}, "must be an object of objects of numbers from 0 to 1"),
        ("without_recall", {"all": 0.5}, "has {'all': 0.5} for without_recall, which must be an object of objects"),
        ("without_recall", [0.5], "has [0.5] for without_recall, which must be an object of objects"),
        ("test.all.loss", [1.0], "has [1.0] for test all loss, which must be a number"),
        ("test.all.loss", float("inf"), "has inf for test all loss, which must be a number"),
        ("test.all", 0.5, "has 0.5 for test all, which must be an object"),
        ("test", None, "has None for test, which must be an object"),
        ("valid", [], "has [] for valid, which must be an object"),
        ("steps", 1.5, "has 1.5 for steps, which must be a whole number"),
        ("steps", -1, "has -1 for steps, which must be a whole number"),
        ("params", 2**63, "must be a whole number"),
        ("params", "many", "has 'many' for params, which must be a whole number"),
        ("steps_to_99", False, "has False for steps_to_99"),
        ("tokens_per_s", "fast", "has 'fast' for tokens_per_s, which must be a number"),
        ("wall_s", {}, "has {} for wall_s, which must be a number"),
        ("overlap", 1.5, "has 1.5 for overlap, which must be a number from 0 to 1"),
        ("science", "x", "has 'x' for science, which must be a whole number"),
        ("error", 3, "has 3 for error, which must be text"),
        ("provenance", [], "has [] for provenance, which must be an object"),
        ("test.all.accuracy", 0.75, "has 0.75 for test all accuracy, but the mean over its slices is 0.25"),
        ("test.pairs=16.accuracy", 0.28, "has 0.25 for test all accuracy, but the mean over its slices is 0.26"),
        ("valid.pairs=4.loss", 0, "has 1.5 for valid all loss, but the mean over its slices is 1"),
        ("test", {}, "has the status done but no test scores of all"),
        ("valid", {}, "has the status done but no valid scores of all"),
        ("valid", {ALL: {"accuracy": 0.5}}, "has the status done but no valid scores of pairs=4"),
        (
            "test",
            {part: {"accuracy": 0.5} for part in PARTS[:-1]},
            "has the status done but no test scores of pairs=16",
        ),
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
@pytest.mark.parametrize(
    ("key", "values"),
    [("gate", ("context", "input", "none")), pytest.param("segment", (4, 8, 16), marks=pytest.mark.product)],
)
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

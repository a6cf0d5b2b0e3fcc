"""The list of stored runs: which, in what order, under which names."""

from pathlib import Path
from typing import Any

from mclab.config.outcome import Outcome
from mclab.plan.grid import plan_from
from mclab.plan.plan import Plan
from mclab.runner import execute
from mclab.store import Records, Store
from mclab.verbs.list import listing
from tests.stored import done

GATES = {"grid": {"model.mixer.gate": ["none", "context"]}, "seeds": "0..1"}


def train(runs: Any, **_: object) -> list[Outcome]:
    return [done(run, steps=9, params=7) for run in runs]


def ran(out: Path, *plans: Plan) -> Records:
    with Store(out) as store:
        for plan in plans:
            execute(plan, store, train=train)
    return Records(out)


def columns(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_runs_stand_in_the_plans_order_under_the_authors_words(tmp_path: Path) -> None:
    """`gate: none` is stored as the residual that it is; the list says what the author wrote."""
    plan = plan_from(GATES, "g")
    rows = listing(ran(tmp_path, plan), plan)
    assert columns(rows, "gate", "seed") == [("none", 0), ("none", 1), ("context", 0), ("context", 1)]
    assert list(rows[0]) == [
        *("run_id", "status", "seed", "gate", "valid_accuracy", "valid_loss", "test_accuracy", "test_loss"),
        *("steps_done", "steps_to_99", "diverged_step", "params", "tokens_per_s", "wall_s", "error"),
    ]
    assert columns(rows[:1], "test_accuracy", "test_loss", "steps_done", "error") == [(0.5, 1.0, 9, None)]


def test_chosen_keys_vary_too(tmp_path: Path) -> None:
    plan = plan_from({**GATES, "select": {"over": {"train.lr": [0.001, 0.01]}, "seeds": 1}}, "g")
    rows = listing(ran(tmp_path, plan), plan)
    assert columns(rows, "gate", "lr", "seed")[:3] == [("none", 0.001, 0), ("none", 0.001, 1), ("none", 0.01, 0)]


def test_rows_of_changes_go_by_their_names(tmp_path: Path) -> None:
    plan = plan_from({"changes": {"full": {}, "- gate": {"model.mixer.gate": "none"}}}, "g")
    rows = listing(ran(tmp_path, plan), plan)
    assert columns(rows, "name", "gate") == [("full", "context"), ("- gate", "none")]


def test_a_key_named_as_a_figure_keeps_its_path(tmp_path: Path) -> None:
    plan = plan_from({"runs": [{"train.steps": 3, "eval.every": 3}, {"train.steps": 5, "eval.every": 5}]}, "g")
    rows = listing(ran(tmp_path, plan), plan)
    assert columns(rows, "steps", "every", "steps_done") == [(3, 3, 9), (5, 5, 9)]


def test_runs_beyond_the_plan_come_last_with_whatever_tells_them_apart(tmp_path: Path) -> None:
    plan, older = plan_from(GATES, "g"), plan_from({**GATES, "base": {"model": {"dim": 16}}}, "g")
    rows = listing(ran(tmp_path, plan, older), plan)
    assert columns(rows, "dim") == [(32,)] * 4 + [(16,)] * 4
    assert rows[0]["gate"] == "none"
    assert (
        sorted(columns(rows[4:], "gate", "aggregate"), key=str) == [("context", "grm")] * 2 + [(None, "residual")] * 2
    )


def test_without_a_plan_the_records_speak_for_themselves(tmp_path: Path) -> None:
    rows = listing(ran(tmp_path, plan_from(GATES, "g")), None)
    assert [row["run_id"] for row in rows] == sorted(row["run_id"] for row in rows)
    assert {row["aggregate"] for row in rows} == {"grm", "residual"}
    assert listing(ran(tmp_path / "none"), None) == []

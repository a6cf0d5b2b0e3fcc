"""A file of trials that somebody has edited."""

import json
from typing import Any

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.space_trials import Objective, SpaceAxis, Trial, Trials, as_dict, from_dict


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        (None, {"asked": -1}),
        (None, {"seeds": [2**63]}),
        (None, {"trials": 3}),
        (None, {"importances": {"a": {"b": "much"}}}),
        ("axes", {"path": 3}),
        ("axes", {"kind": "float"}),
        ("objectives", {"direction": "up"}),
        ("trials", {"metrics": {"test.accuracy": "0.5"}}),
        ("trials", {"metrics": 3}),
        ("trials", {"error": 2**31}),
        ("trials", {"status": "fine"}),
        ("trials", {"number": True}),
        ("trials", {"values": []}),
        ("trials", {"diverged_step": {"a": 1}}),
        ("trials", {"params": {"train.lr": "\ud800"}}),
        ("trials", {"params": {"train.lr": 0.5}}),
        ("trials", {"params": {"model.dim": 8}}),
        ("trials", {"metrics": {"test.loss": float("nan")}}),
        (None, {"objectives": []}),
        (None, {"seeds": []}),
        ("axes", {"low": 10**400}),
    ],
)
def test_spoilt_trials_are_an_error_of_one_line(part: str | None, changes: dict[str, Any]) -> None:
    """Whatever is of another type than a search writes is found when the file is read, not by a table."""
    axes, goals = (SpaceAxis("train.lr", "choice", (0, None)),), (Objective("valid.accuracy", "maximize"),)
    data = json.loads(
        json.dumps(
            as_dict(
                Trials("s", None, axes, goals, (0,), 1, (Trial(0, "done", {"train.lr": 0}, (0.5,), run_ids=("0",)),))
            )
        )
    )
    assert from_dict(data).trials
    (data[part][0] if part else data).update(changes)
    with pytest.raises(ConfigError, match=r"^x\.json: these are not trials of mclab \(.*\)$"):
        from_dict(data, "x.json")

"""mclab list: the stored runs of a folder."""

import json
import re
import shutil
from pathlib import Path

from mclab.plan.space_trials import as_dict
from tests.commands import fine
from tests.report.sweeps.trials import study, trial


def test_a_list_is_aligned_and_its_json_says_all(finished: Path) -> None:
    listed = fine("list", finished)
    head, *rows = listed.out.splitlines()
    assert head.split() == [
        "run_id",
        "status",
        "seed",
        "gate",
        "valid_accuracy",
        "test_accuracy",
        "steps_done",
        "wall_s",
    ]
    assert [row.split()[1:4] for row in rows] == [
        ["done", "0", "context"], ["done", "1", "context"], ["done", "0", "none"], ["done", "1", "none"],
    ]  # fmt: skip
    at = head.index("gate")
    assert {row[at : at + 7].strip() for row in rows} == {"context", "none"}
    assert listed.err == f"4 runs in {finished}\n"
    facts = fine("list", finished, "--json").json
    assert [fact["run_id"] for fact in facts] == [row.split()[0] for row in rows]
    assert {"test_loss", "valid_loss", "params", "tokens_per_s", "error"} <= set(facts[0])


def test_without_a_folder_the_run_folders_are_listed(here: Path, finished: Path) -> None:
    assert fine("list").out == "no run folder below runs/\n"
    assert fine("list", "--json").json == []
    shutil.copytree(finished, here / "runs/sub/tiny")
    (next((here / "runs/sub/tiny/records").iterdir())).unlink()
    shutil.copytree(finished, here / "runs/broken")
    (here / "runs/broken/plan.json").write_text("{")
    found = fine("list", "--json")
    assert "runs/broken/plan.json" in found.err
    broken, tiny = found.json
    assert (broken["folder"], broken["kind"], broken["stored"], broken["planned"]) == ("runs/broken", "grid", 4, None)
    assert tiny.pop("date").startswith("20")
    asked = {"question": "Does the gate matter?", "stored": 3, "planned": 4, "of": "runs"}
    assert tiny == {"folder": "runs/sub/tiny", "kind": "grid", **asked}
    assert re.search(r"^runs/sub/tiny +grid +3 of 4 runs +20\S+ +Does the gate matter\?$", fine("list").out, re.M)


def test_a_sweeps_folder_counts_trials(here: Path) -> None:
    (here / "runs/mc").mkdir(parents=True)
    (here / "runs/mc/trials.json").write_text(
        json.dumps(as_dict(study(trial(0, 0.5, {"gate": "context"}), trial(1, "failed", {"gate": "input"}))))
    )
    (found,) = fine("list", "--json").json
    assert (found["kind"], found["of"], found["date"]) == ("sweep", "trials", None)
    assert (found["stored"], found["planned"]) == (2, 2)

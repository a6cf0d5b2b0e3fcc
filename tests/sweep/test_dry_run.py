"""What `mclab sweep --dry-run` says, and the time that is predicted for a search."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands import fine, snapshot
from tests.sweep.bench import SIX, SPACE, FakeTraining, journal, space_file
from tests.sweep.test_sweep import words


def test_a_dry_run_says_what_would_be_searched_and_writes_nothing(here: Path) -> None:
    path = space_file(here, f"question: What matters?\n{SPACE}")
    before = snapshot(here)
    done = fine(*words(path, "--trials", 50, "--dry-run"))
    assert snapshot(here) == before
    for piece in (
        "What matters?", "model.mixer.k          1 to 3 when {model.mixer.aggregate: ssc}", "train.lr",
        "0.001 to 0.1 (log)", "maximize valid.accuracy; sampler random, pruner none; a continuous space",
        "50 trials; 25,600 training tokens if all cost as much as the base", "into o",
    ):  # fmt: skip
        assert piece in done.out
    facts = fine(*words(path, "--trials", 50, "--dry-run", "--json")).json
    assert (facts["points"], facts["trials"], facts["space"]["model.mixer.gate"]) == (
        None,
        50,
        "[context, input, none]",
    )


def test_until_the_first_trial_begins_workers_are_starting_and_the_time_is_what_was_predicted(
    here: Path, training: FakeTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers are this process, for speed; what is told is what two would make of it."""
    from mclab.config.options import RunOptions
    from mclab.runner import Ahead
    from mclab.store import Store
    from mclab.sweep import search
    from mclab.workers import open_pool
    from tests.sweep.bench import a_space, shared

    def here_alone(how: RunOptions, workers: int, **more: Any) -> Any:
        return open_pool(how, 1, **more)

    monkeypatch.setattr(search, "open_pool", here_alone)
    seen: list[tuple[str, Ahead | None]] = []
    with Store(here / "o") as store:
        study = shared(journal(here / "o"), a_space(here), 3)
        hear = lambda now: seen.append((now.stage(), now.ahead()))  # noqa: E731
        search.Search(study, store, RunOptions("cpu", 2), hear, print).go()
    stages = [stage for stage, _ in seen]
    assert stages[0] == "starting 2 workers"
    assert set(stages[2:]) == {""}
    first, last = seen[0][1], seen[-1][1]
    assert first is not None
    assert first.least is not None
    assert 2 < first.least < first.seconds
    assert last is not None
    assert last.least is None


def test_a_dry_run_goes_by_stored_times_and_counts_what_is_finished(here: Path, training: FakeTraining) -> None:
    """Six points that took a second each, though their configs say some thousandths."""
    path = space_file(here, SIX)
    new = fine(*words(path, "--trials", 6, "--dry-run", "--workers", 1))
    assert "6 trials; " in new.out
    assert re.search(r"; about .* on 1 CPU worker \(a rough guess, as no runs are stored.*\); into o", new.out)
    fine(*words(path, "--trials", 4))
    part = fine(*words(path, "--trials", 6, "--dry-run", "--workers", 1))
    assert "6 trials (4 of them finished); " in part.out
    assert re.search(r"; about .* on 1 CPU worker \(from 4 stored runs.*\); into o", part.out)
    facts = fine(*words(path, "--trials", 6, "--dry-run", "--workers", 1, "--json")).json
    assert (facts["finished"], facts["stored_runs_used"], facts["processes"]) == (4, 4, 1)
    assert facts["seconds"][0] < facts["seconds"][1]
    fine(*words(path, "--trials", 6))
    assert "; nothing left to run; into o" in fine(*words(path, "--trials", 6, "--dry-run")).out

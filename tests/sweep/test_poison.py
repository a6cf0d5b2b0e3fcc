"""Trials that end the process that trains them: given up after two deaths, in the study and in the run folder."""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from mclab.store.crashes import reason
from mclab.sweep.owner import deaths_before, deaths_now
from mclab.sweep.study import Claim, Shared
from tests.commands import mclab, records, started
from tests.sweep.bench import SIX, a_space, done, elsewhere, frozen, journal, shared, space_file, trials

# ---- what counts ----


def died(folder: Path, share: float | None = 0.0, boot: str = "another boot") -> tuple[Shared, Claim]:
    """A process on another machine that trains a trial, is so far, and dies."""
    study = shared(journal(folder), a_space(folder, SIX))
    elsewhere(study)
    claim = study.claim()
    assert claim is not None
    if share is not None:
        study.note_training(claim, share)
    return study, claim


def next_one(here: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> tuple[Shared, Claim]:
    """The trial that another process takes on then."""
    monkeypatch.setattr("mclab.sweep.owner.Watch.dead", lambda self, owner: owner.name != self._me.name)
    study = shared(journal(here), a_space(here, SIX), said=said)
    claim = study.claim()
    assert claim is not None
    return study, claim


def test_a_trial_whose_owners_died_twice_is_failed_and_passed_on_no_more(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lost = died(here)
    said: list[str] = []
    second, taken = next_one(here, monkeypatch, said)
    assert (taken.trial.params, taken.suspect) == (lost.trial.params, True)
    second.note_training(taken, 0.0)
    third, other = next_one(here, monkeypatch, said)
    assert (other.trial.params != lost.trial.params, other.suspect) == (True, False)
    assert said[-1] == f"trial {taken.number} has failed: {reason(2, 0.0)}"
    assert [(point.run_ids, error) for point, error in third.poisoned] == [(lost.point.run_ids, reason(2, 0.0))]
    found = frozen(journal(here))[taken.number]
    assert (found.user_attrs["status"], found.user_attrs["error"]) == ("failed", reason(2, 0.0))
    assert third.finish(other, done(other))
    assert third.retry_failed() == 1
    again = third.claim()
    assert again is not None
    assert (again.trial.params, again.suspect) == (lost.trial.params, False)


@pytest.mark.parametrize(
    ("shares", "given_up"),
    [((0.2, 0.25), True), ((0.2, 0.5), False), ((0.2, 0.5, 0.5), True), ((None, None), False), ((0.2, None), False)],
)
def test_whose_owner_did_not_train_it_or_got_further_is_innocent(
    here: Path, monkeypatch: pytest.MonkeyPatch, shares: tuple[float | None, ...], given_up: bool
) -> None:
    first, *others = shares
    _, lost = died(here, first)
    for share in others:
        study, claim = next_one(here, monkeypatch, [])
        if share is not None:
            study.note_training(claim, share)
    study, claim = next_one(here, monkeypatch, [])
    assert (claim.trial.params != lost.trial.params) == given_up == bool(study.poisoned)


def test_an_interrupt_forgets_no_death_and_adds_none(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died(here)
    study, claim = next_one(here, monkeypatch, [])
    study.note_training(claim, 0.0)
    assert study.release() == 1
    (waiting,) = [each for each in frozen(journal(here)) if each.user_attrs.get("retry_of") == claim.number]
    assert deaths_before(waiting).times == 1


def test_a_machine_that_started_again_is_no_fault_of_the_trial(here: Path) -> None:
    study = shared(journal(here), a_space(here, SIX))
    claim = study.claim()
    assert claim is not None
    study.note_training(claim, 0.3)
    (trial,) = [each for each in frozen(journal(here)) if each.number == claim.number]
    assert deaths_now(trial, study.me, study.me).times == 1
    before = type(study.me)(**{**study.me.as_dict(), "place": "another boot"})
    assert deaths_now(trial, before, study.me).times == (0 if study.me.place else 1)


# ---- processes ----

MODULE = """
import os, signal
from torch import nn

class Dies(nn.Module):
    def __init__(self, dim, deadly):
        super().__init__()
        self.inner, self.deadly = nn.Linear(dim, dim), deadly

    def forward(self, x):
        if self.deadly == 1 and len(x) > 2:  # in training, not where it is checked
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner(x)
"""
SPACE = """
base:
  task: {vocab: 16, length: 16, pairs: [1, 2]}
  model: {dim: 8, layers: 1, mixer: {name: module, module: own_dies.Dies, args: {deadly: 0}}}
  train: {steps: 4, batch: 8}
  eval: {valid: 8, test: 16, every: 2}
space: {model.mixer.args: [{deadly: 0}, {deadly: 1}, {deadly: 2}]}
sampler: grid
"""


@pytest.mark.product
def test_two_processes_are_lost_to_a_trial_and_a_third_finishes_the_search(here: Path) -> None:
    (here / "own_dies.py").write_text(MODULE)
    command = ["sweep", "--space", space_file(here, SPACE), "--trials", 3, "--workers", 1, "--storage", here / "j.log"]
    with ExitStack() as stack:
        both = [stack.enter_context(started(*command, "--out", f"o{n}", folder=here)) for n in range(2)]
        told = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [-signal.SIGKILL] * 2, told
    last = mclab(*command, "--out", "o2")
    sys.modules.pop("own_dies", None)
    assert last.code == 3, last.err
    assert f"failed: {reason(2, 0.0)}" in last.err
    found = trials(here / "o2")
    assert sorted(trial["status"] for trial in found) == ["done", "done", "failed", "lost"]
    (failed,) = [trial for trial in found if trial["status"] == "failed"]
    assert failed["error"] == reason(2, 0.0)
    stored = records(here / "o2")[failed["run_ids"][0]]
    assert (stored["status"], stored["error"]) == ("failed", reason(2, 0.0))

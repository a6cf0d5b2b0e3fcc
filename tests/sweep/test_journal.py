"""A journal that a kill has torn, and one that is none."""

import errno
import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from optuna.storages.journal import JournalFileBackend

from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.store.files import StoreError
from mclab.sweep.journal import Journal
from tests.commands import fine, mclab, one_line
from tests.sweep.bench import FakeTraining, a_space, done, frozen, journal, shared, space_file, trials, work_off


@pytest.mark.parametrize(
    "torn", [b'{"op_code":6,"wor', b'{"op_code":6', b"\0\0\0\0", b'{"op_code":6}\0\0\n', b'{"a":1}']
)
def test_a_torn_last_line_is_cut_and_said(here: Path, training: FakeTraining, torn: bytes) -> None:
    """optuna#5138: a traceback out of the JSON reader."""
    words = ("sweep", "--space", space_file(here), "--out", "o", "--workers", 1)
    fine(*words, "--trials", 2)
    path = here / "o" / "journal.log"
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    ended = fine(*words, "--trials", 3)
    lines = whole.count(b"\n")
    said = "the last line was incomplete and was removed"
    assert f"o/journal.log: {said}; the journal now ends after line {lines}\n" in ended.err
    assert path.read_bytes().startswith(whole)
    assert all(json.loads(line) for line in path.read_bytes().splitlines())
    assert [trial["status"] for trial in trials(here / "o")] == ["done"] * 3
    assert len(training.asked) == 3


@pytest.mark.parametrize("cut", range(1, 400, 57))
def test_wherever_it_is_cut_the_study_goes_on(tmp_path: Path, cut: int) -> None:
    """What the lost lines told is found out again: their trial's owner is this very process, so it is let go."""
    space = a_space(tmp_path)
    work_off(shared(journal(tmp_path), space, 2), [])
    path = tmp_path / "journal.log"
    path.write_bytes(path.read_bytes()[:-cut])
    said: list[str] = []
    place = Journal(path, said.append)
    study = shared(place, space, 3)
    study.release()
    found = frozen(place)
    assert len(said) == 1
    assert {trial.state.name for trial in found} <= {"COMPLETE", "RUNNING", "WAITING", "FAIL"}


def test_a_line_in_the_middle_that_is_none_is_refused_with_its_place(here: Path, training: FakeTraining) -> None:
    words = ("sweep", "--space", space_file(here), "--out", "o", "--workers", 1)
    fine(*words, "--trials", 2)
    path = here / "o" / "journal.log"
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:3], b"{torn" + lines[3], *lines[4:]])
    path.write_bytes(damaged)
    one_line(mclab(*words, "--trials", 3), "o/journal.log:4: this line of the journal is damaged", "--storage")
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("key", ["trial_id", "param_name", "distribution", "study_name", "op_code"])
def test_a_line_that_no_study_has_written_is_refused(here: Path, training: FakeTraining, key: str) -> None:
    """It is JSON, and Optuna stumbles over it when it reads the journal."""
    words = ("sweep", "--space", space_file(here), "--out", "o", "--workers", 1)
    fine(*words, "--trials", 2)
    path = here / "o" / "journal.log"
    lines = path.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if f'"{key}"' in line)
    lines[first] = lines[first].replace(f'"{key}":', '"op_code": 99, "other":' if key == "op_code" else '"other":')
    path.write_text("".join(lines))
    one_line(mclab(*words, "--trials", 3), "o/journal.log: the journal has lines that no study", "--storage")


def test_what_no_search_writes_beside_a_trial_is_a_line(here: Path, training: FakeTraining) -> None:
    words = ("sweep", "--space", space_file(here), "--out", "o", "--workers", 1, "--trials", 1)
    fine(*words)
    path = here / "o" / "journal.log"
    path.write_text(re.sub(r'"test.accuracy": ?[0-9.]+', '"test.accuracy": "much"', path.read_text()))
    one_line(mclab(*words), "trial 0 of the study: this is not a trial of mclab (metrics.test.accuracy: ")


def test_a_place_that_cannot_be_written_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((StoreError, ConfigError), match="there is a file where a folder must be"):
        shared(Journal(tmp_path / "file" / "journal.log", print), a_space(tmp_path))


FOREIGN = {
    "a note": b"do not lose me\n",
    "a note without an end": b"do not lose me",
    "several lines": b"one\ntwo\nthree",
    "a line of JSON": b'{"a": 1}\n',
    "a mapping over lines": b'{\n  "a": 1\n}\n',
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_file_that_is_no_journal_is_left_alone(here: Path, training: FakeTraining, what: str) -> None:
    """Mended as a journal with a torn line, it would be empty."""
    path = here / "note.txt"
    path.write_bytes(FOREIGN[what])
    ended = mclab("sweep", "--space", space_file(here), "--trials", 1, "--out", "o", "--storage", "note.txt")
    one_line(ended, "note.txt", "journal", "give another --storage or --out")
    assert path.read_bytes() == FOREIGN[what]
    assert training.asked == []


def test_a_line_torn_while_the_study_lives_is_mended_and_it_goes_on(tmp_path: Path) -> None:
    """Another process was killed in the middle of a write: this one's next line must not end up behind the torn one."""
    said: list[str] = []
    path = tmp_path / "journal.log"
    study = shared(Journal(path, said.append), a_space(tmp_path), 4)
    claim = study.claim()
    assert claim is not None
    with path.open("ab") as file:
        file.write(b'{"op_code":6,"wor')
    assert study.finish(claim, done(claim))
    assert len(said) == 1
    work_off(study, [])
    assert [trial.state.name for trial in frozen(journal(tmp_path))] == ["COMPLETE"] * 4
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_a_full_disk_is_a_line_and_the_search_goes_on_after_it(
    here: Path, training: FakeTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes half a line first, and has room again when the trial is given up."""
    words = ("sweep", "--space", space_file(here), "--trials", 3, "--out", "o", "--workers", 1)
    append, full = JournalFileBackend.append_logs, [False]

    def refuse(self: JournalFileBackend, logs: Any) -> None:
        if full[0]:
            full[0] = False
            with open(self._file_path, "ab") as file:
                file.write(b'{"op_code":6,"wor')
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, logs)

    def fill(run: RunConfig) -> None:
        full[0] = len(training.asked) == 1

    training.before = fill
    with monkeypatch.context() as patched:
        patched.setattr(JournalFileBackend, "append_logs", refuse)
        ended = mclab(*words)
    said = "o/journal.log: the disk is full; results stored before are unharmed: free some space and repeat the command"
    assert (ended.code, ended.err.splitlines()[-1]) == (2, said)
    assert "Traceback" not in ended.err
    training.before = lambda run: None
    fine(*words)
    found = trials(here / "o")
    assert [trial["status"] for trial in found if trial["status"] != "lost"] == ["done"] * 3
    assert len(training.asked) == len(set(training.asked)) == 3


def test_an_interrupt_is_not_held_up_by_who_holds_the_lock(
    here: Path, training: FakeTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is stopped in the middle of a claim, say; this one's trial is found without its owner later."""
    monkeypatch.setattr("mclab.sweep.command.GOODBYE", 0.05)
    with ExitStack() as other:

        def interrupt(run: RunConfig) -> None:
            other.enter_context(journal(here / "o").guard("study s"))
            raise KeyboardInterrupt

        training.before = interrupt
        ended = mclab("sweep", "--space", space_file(here), "--trials", 3, "--out", "o", "--workers", 1)
        assert (ended.code, ended.out) == (130, "")
        assert "interrupted; to continue: mclab sweep " in ended.err
        assert "Traceback" not in ended.err

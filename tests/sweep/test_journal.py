"""A journal that a kill has torn, and one that is none."""

import json
from pathlib import Path

import pytest

from mclab.config.strict import ConfigError
from mclab.store.files import StoreError
from mclab.sweep.journal import Journal
from tests.commands import fine, mclab, one_line
from tests.sweep.bench import FakeTraining, a_space, frozen, journal, shared, space_file, trials, work_off


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
    done = fine(*words, "--trials", 3)
    lines = whole.count(b"\n")
    said = "the last line was torn, as by a kill in the middle of a write"
    assert f"o/journal.log: {said}: mended after line {lines}\n" in done.err
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
    one_line(mclab(*words, "--trials", 3), "o/journal.log:4: is no line of a journal", "--study")
    assert path.read_bytes() == damaged


def test_a_place_that_cannot_be_written_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((StoreError, ConfigError), match="a file stands where a folder must be"):
        shared(Journal(tmp_path / "file" / "journal.log", print), a_space(tmp_path))

"""A database that goes away while trials train: waited for, told of once; nothing trained is lost or trained again."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mclab.cli.progress import Lines
from mclab.config.options import RunOptions
from mclab.config.run import RunConfig
from mclab.store import Store
from mclab.sweep.owner import LEASE
from mclab.sweep.postgres import Postgres
from mclab.sweep.search import Search
from mclab.sweep.storage import PATIENCE, ConnectionLostError, UnansweredError
from mclab.sweep.study import Claim, End, Shared
from tests.commands import fine, mclab, records
from tests.sweep.bench import (
    BASE,
    SIX,
    SPACE,
    FakeTraining,
    a_space,
    done,
    elsewhere,
    journal,
    shared,
    space_file,
    trials,
)
from tests.sweep.conftest import Server, running

Waits = list[float]


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server that others do not need."""
    with running() as found:
        yield found


@pytest.fixture
def away(own: Server, training: FakeTraining) -> str:
    """The address of a database whose server stops while the second run trains."""
    address = own.fresh()

    def stop(run: RunConfig) -> None:
        if len(training.asked) == 1:
            own.stop()

    training.before = stop
    return address


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """The pauses that were made: they cost no time, but the clock of our patience moves on."""
    return pausing(monkeypatch, lambda: None)


def pausing(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> Waits:
    """Do that in place of each pause."""
    pauses: Waits = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        meanwhile()

    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=sleep)
    monkeypatch.setattr("mclab.sweep.storage.time", clock)
    return pauses


def words(path: Path, *more: object) -> tuple[object, ...]:
    return ("sweep", "--space", path, "--out", "o", "--workers", 1, *more)


def test_a_database_that_comes_back_costs_nothing(
    here: Path, training: FakeTraining, own: Server, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pausing(monkeypatch, own.start)
    ended = fine(*words(space_file(here), "--trials", 5, "--storage", away))
    assert ended.err.count(f"{away} does not answer (") == 1
    assert ended.err.count(f"{away} answers again after ") == 1
    assert "this command: 5 done; study s: 5 of 5 trials, 5 distinct points" in ended.err
    assert [trial["status"] for trial in trials(here / "o")] == ["done"] * 5
    assert sorted(training.asked) == sorted(records(here / "o"))
    assert len(training.asked) == 5


def test_one_that_does_not_ends_the_search_and_the_next_start_tells_what_was_trained(
    here: Path, training: FakeTraining, own: Server, away: str, waits: Waits
) -> None:
    command = words(space_file(here), "--trials", 5, "--storage", away)
    ended = mclab(*command)
    own.start()
    assert ended.code == 2
    assert ended.err.count(f"{away} does not answer (") == 1
    *_, last = ended.err.splitlines()
    assert last.startswith(f"{away} has not answered for {PATIENCE:.0f} s (")
    assert "start it again and repeat the command" in last
    assert "Traceback" not in ended.err
    assert waits[:3] == sorted(waits[:3]) != [waits[0]] * 3
    assert sum(waits) == PATIENCE
    assert sorted(records(here / "o")) == sorted(training.asked)
    assert len(training.asked) == 2
    again = fine(*command)
    assert "is gone; its runs are stored, so the trial is entered into the study as done" in again.err
    assert "this command: 4 done (1 of them answered from stored results)" in again.err
    found = trials(here / "o")
    assert [trial["status"] for trial in found] == ["done"] * 5
    assert [trial["duration_s"] for trial in found] == [1.0] * 5
    assert len(training.asked) == len(set(training.asked)) == 5


def test_an_interrupt_acts_while_a_database_is_waited_for(
    here: Path, training: FakeTraining, own: Server, away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = pausing(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT))
    ended = mclab(*words(space_file(here), "--trials", 5, "--storage", away))
    own.start()
    assert ended.code == 130
    assert len(waits) == 1
    assert ended.err.splitlines()[-1].startswith("interrupted; to continue: mclab sweep")
    fine(*words(here / "s.yaml", "--trials", 5, "--storage", away))
    assert [trial["status"] for trial in trials(here / "o")] == ["done"] * 5
    assert len(training.asked) == len(set(training.asked)) == 5


def test_what_is_begun_is_trained_to_its_end_though_the_database_is_away(
    here: Path, training: FakeTraining, own: Server, waits: Waits
) -> None:
    """As on a GPU: several packs of trials are in flight."""
    place, said = Postgres(own.fresh()), list[str]()
    training.before = lambda run: None if training.asked else own.stop()
    space = a_space(here, f"{BASE}\nspace:\n  model.dim: [8, 16]\n  train.lr: {{low: 1.0e-3, high: 1.0e-1}}\n")
    for attempt in range(2):
        with Store(here / "o") as store:
            study = shared(place, space, 6, said=said)
            search = Search(study, store, RunOptions("cuda", 1), Lines(said.append), said.append)
            if attempt:
                search.go()
                continue
            with pytest.raises(UnansweredError):
                search.go()
        assert len(training.packs) == 2
        assert sum("runs in training are finished and stored" in line for line in said) == 1
        assert len(records(here / "o")) == 6
        own.start()
        study.me.retire()
    assert len(training.asked) == 6
    assert {trial.status for trial in study.trials()} == {"done"}
    assert (search.tally.ran.total(), search.tally.answered) == (6, 6)
    place.close()


# ---- exchanges whose answer is lost ----


class Cut:
    """The `at`-th write is cut: before it is carried out, or after, so that only the answer is lost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, database: bool, at: int, carried_out: bool) -> None:
        self._at, self._carried_out, self.writes = at, carried_out, 0
        if database:
            self._commit = psycopg.Connection.commit
            monkeypatch.setattr(psycopg.Connection, "commit", lambda connection: self.commit(connection))
        else:
            self._append = JournalFileBackend.append_logs
            monkeypatch.setattr(JournalFileBackend, "append_logs", lambda file, logs: self.append(file, logs))

    def commit(self, connection: psycopg.Connection) -> None:
        """Of a session of Optuna's, which commits what it has read as well."""
        written = connection.execute("SELECT pg_current_xact_id_if_assigned()").fetchone()
        self._write(lambda: self._commit(connection), writes=written != (None,))
        if written != (None,) and self.writes == self._at:
            connection.close()
            raise psycopg.OperationalError("cut")

    def append(self, file: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        """As of a network disk."""
        self._write(lambda: self._append(file, logs))
        if self.writes == self._at:
            raise OSError(errno.ESTALE, "cut")

    def _write(self, carry_out: Callable[[], None], writes: bool = True) -> None:
        self.writes += writes
        if not writes or self.writes != self._at or self._carried_out:
            carry_out()


def claimed(study: Shared) -> Claim:
    """The next trial."""
    claim = study.claim()
    assert claim is not None
    return claim


def each_write(monkeypatch: pytest.MonkeyPatch, database: bool, work: Callable[[str], None], carried_out: bool) -> None:
    """Do some work again and again, each time with another of its writes cut, until all were."""
    pausing(monkeypatch, lambda: None)
    monkeypatch.setattr("os.fsync", lambda file: None)  # no machine stops here, and a disk is slow
    at, writes = 0, 1
    while at < writes:
        at += 1
        with monkeypatch.context() as broken:
            cut = Cut(broken, database, at, carried_out)
            work(f"s{at}")
            writes = cut.writes
    assert at > 10


def test_a_trial_is_one_whichever_answer_of_a_database_is_lost(
    here: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write in turn, from the one that makes the study to the one that ends the trial."""
    space, place = a_space(here, f"{BASE}\nspace:\n  train.lr: [1.0e-2, 1.0e-1]\n"), Postgres(database)

    def work(name: str) -> None:
        study = shared(place, space, 1, name)
        claim = claimed(study)
        assert study.finish(claim, done(claim))
        (found,) = study.frozen()
        assert (found.state, found.params) == (TrialState.COMPLETE, dict(space.start))
        assert (found.values, found.intermediate_values) == ([0.5], {2: 0.5})

    each_write(monkeypatch, True, work, carried_out=True)
    place.close()


@pytest.mark.parametrize(("text", "carried_out"), [(SPACE, True), (SIX, False)])
def test_nothing_is_doubled_or_lost_whichever_write_to_a_network_disk_fails(
    here: Path, monkeypatch: pytest.MonkeyPatch, text: str, carried_out: bool
) -> None:
    """Drawn points and a grid's, what failed and is tried again, and the trial of a process that has died."""
    space = a_space(here, text)

    def work(name: str) -> None:
        place = journal(here / name)
        gone = shared(place, space, 2)
        gone.me = replace(gone.me, pid=2**22 + 1)
        dead = claimed(gone)
        study = shared(place, space, 2)
        first, second = claimed(study), claimed(study)
        assert first.trial.params == dead.trial.params
        assert study.claim() is None
        assert study.finish(first, done(first))
        assert study.finish(second, End("failed", facts={"error": "broken"}))
        assert study.retry_failed() == 1
        third = claimed(study)
        assert third.trial.params == second.trial.params
        assert study.finish(third, done(third))
        found = study.trials()
        assert [trial.status for trial in found] == ["lost", "done", "lost", "done"]
        assert [trial.retry_of for trial in found] == [None, 0, None, 2]
        assert study.left() == 0

    each_write(monkeypatch, False, work, carried_out)


def test_whose_lock_is_lost_with_its_connection_writes_nothing_more(database: str) -> None:
    """The server has started again, and another process may have the lock by now."""
    place = Postgres(database)
    with place.guard("studies"):
        storage = place.open()
    with place.guard("study s"):
        with psycopg.connect(database, autocommit=True) as other:
            others = "pid <> pg_backend_pid() AND datname = current_database()"
            other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        with pytest.raises(ConnectionLostError):
            storage.get_all_studies()
    assert storage.get_all_studies() == []
    place.close()


def test_silence_while_nothing_comes_through_is_no_sign_of_death(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, space = [0.0], a_space(here)
    first, second = shared(journal(here), space, 1), shared(journal(here), space, 1)
    elsewhere(first)
    assert first.claim() is not None
    second._watch._clock = lambda: now[0]
    assert second.claim() is None
    now[0] = LEASE + 1
    with monkeypatch.context() as broken:
        broken.setattr(second.study, "set_user_attr", lambda *_: (_ for _ in ()).throw(ConnectionLostError))
        with pytest.raises(ConnectionLostError):
            second._beat(1)
    assert second.claim() is None
    now[0] = 2 * LEASE + 2
    assert second.claim() is not None

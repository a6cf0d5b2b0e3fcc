"""A study that several share: each trial once, exactly as many as were asked for, none lost with its process."""

import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from mclab.config.strict import ConfigError
from mclab.sweep.owner import LEASE, Owner, Watch
from mclab.sweep.study import Claim, End
from mclab.sweep.trials import counted, status
from tests.sweep.bench import BASE, SIX, SPACE, a_space, done, elsewhere, frozen, journal, shared, together, work_off
from tests.sweep.conftest import Where


def test_many_start_on_a_fresh_place_and_finish_exactly_as_many_as_asked(where: Where, tmp_path: Path) -> None:
    """optuna#820, #1092, #4621: eight that create one study at the same moment, and batched asks that overshoot."""
    space, ended = a_space(tmp_path), list[int]()
    together(*[lambda: work_off(shared(where(), space, 12), ended)] * 8)
    found = frozen(where())
    assert Counter(trial.state for trial in found) == {TrialState.COMPLETE: 12}
    assert sorted(ended) == list(range(12))
    assert found[0].params == dict(space.start)
    assert len({str(trial.params) for trial in found}) == 12


def test_a_grid_that_several_share_visits_each_point_once(where: Where, tmp_path: Path) -> None:
    """optuna#5489, #4627, #2039."""
    space, ended = a_space(tmp_path, SIX), list[int]()
    together(*[lambda: work_off(shared(where(), space, 100), ended)] * 3)
    points = Counter(str(trial.params) for trial in frozen(where()))
    assert (len(points), set(points.values())) == (6, {1})


def test_a_killed_process_is_found_out_and_its_parameters_are_taken_over(where: Where, tmp_path: Path) -> None:
    """optuna#485, #1641, #3293, #6615: ask and tell, with and without a heartbeat in the storage."""
    space, said = a_space(tmp_path), list[str]()
    first = shared(where(), space)
    first.me = replace(first.me, pid=2**22 + 1)  # above any process id
    lost = first.claim()
    assert lost is not None
    second = shared(where(), space, said=said)
    taken = second.claim()
    assert taken is not None
    assert (taken.trial.params, taken.number, taken.retry) == (lost.trial.params, 1, True)
    assert said == [f"trial 0: process {2**22 + 1} on {first.me.host} is gone; another trial takes over its parameters"]
    assert [status(trial) for trial in frozen(where())] == ["lost", "running"]
    assert not first.finish(lost, done(lost))  # a late tell changes nothing
    assert second.finish(taken, done(taken))
    assert [trial.state for trial in frozen(where())] == [TrialState.FAIL, TrialState.COMPLETE]
    assert [trial.number for trial in counted(frozen(where()))] == [1]
    assert not first.finish(lost, done(lost))


def test_one_that_dies_between_ask_and_its_name_is_rescued_whole(where: Where, tmp_path: Path) -> None:
    space = a_space(tmp_path)
    first = shared(where(), space)
    first.study.ask()  # the base's trial runs and nobody owns it
    claim = shared(where(), space).claim()
    assert claim is not None
    assert claim.trial.params == dict(space.start)


def test_one_that_dies_while_it_passes_a_trial_on_does_not_double_it(tmp_path: Path, monkeypatch) -> None:
    space = a_space(tmp_path)
    first, second = shared(journal(tmp_path), space), shared(journal(tmp_path), space)
    first.me = replace(first.me, pid=2**22 + 1)
    assert first.claim() is not None
    with monkeypatch.context() as broken:
        broken.setattr(second, "_end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            second.claim()
    third = shared(journal(tmp_path), space)
    assert third.claim() is not None
    found = frozen(journal(tmp_path))
    assert [trial.user_attrs.get("retry_of") for trial in found] == [None, 0]


def test_a_live_process_keeps_its_trials(where: Where, tmp_path: Path) -> None:
    space = a_space(tmp_path)
    first, second = shared(where(), space), shared(where(), space)
    mine, others = first.claim(), second.claim()
    assert mine is not None
    assert others is not None
    assert (mine.number, others.number) == (0, 1)
    assert mine.trial.params != others.trial.params


def test_a_process_on_another_machine_is_given_up_when_it_is_silent_by_our_clock() -> None:
    now, beats = [0.0], {"far": 1}
    watch = Watch(Owner.me(), beats.get, lambda: now[0])
    far = Owner("far", "elsewhere", 1, "1", "another boot")
    assert not watch.dead(far)
    now[0] += LEASE + 1
    beats["far"] += 1  # it lives, whatever its clock says
    assert not watch.dead(far)
    now[0] += LEASE - 1
    assert not watch.dead(far)
    now[0] += 2
    assert watch.dead(far)
    assert watch.dead(None)


def test_a_silent_process_elsewhere_loses_its_trials_to_who_has_watched_it(where: Where, tmp_path: Path) -> None:
    now, space = [0.0], a_space(tmp_path)
    first, second = shared(where(), space, 2), shared(where(), space, 2)
    elsewhere(first)
    lost, other = first.claim(), first.claim()
    second._watch = Watch(second.me, lambda name: second.study.user_attrs.get(f"mclab:beat:{name}"), lambda: now[0])
    assert second.claim() is None
    assert second.open()
    now[0] = LEASE - 1
    assert second.claim() is None
    now[0] = LEASE + 1
    again = [second.claim(), second.claim()]
    assert [claim.trial.params for claim in again if claim] == [claim.trial.params for claim in (lost, other) if claim]
    assert second.claim() is None


def test_a_process_counts_up_while_it_lives(where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mclab.sweep.owner.BEAT", 0.01)
    space = a_space(tmp_path)
    first, second = shared(where(), space), shared(where(), space)
    far = elsewhere(first)
    with first.beating():
        while not (beat := second.study.user_attrs.get(f"mclab:beat:{far.name}")):
            pass
    assert beat > 0


def test_what_a_process_gives_up_the_next_goes_on_with(tmp_path: Path) -> None:
    space = a_space(tmp_path)
    first = shared(journal(tmp_path), space)
    claims = [first.claim() for _ in range(3)]
    assert first.release() == 3
    second = shared(journal(tmp_path), space)
    again = [second.claim() for _ in range(3)]
    assert [claim.trial.params for claim in again if claim] == [claim.trial.params for claim in claims if claim]


def test_a_study_draws_on_where_it_stood(where: Where, tmp_path: Path) -> None:
    """The sampler's seed depends on how far the study is: stopped and gone on is as never stopped."""
    space = a_space(tmp_path)
    for asked in (3, 6):
        work_off(shared(where(), space, asked), [])
    work_off(shared(where(), space, 6, "whole"), [])
    stopped, whole = frozen(where()), frozen(where(), "whole")
    assert [trial.params for trial in stopped] == [trial.params for trial in whole]
    assert len({str(trial.params) for trial in whole}) == 6


def test_another_space_is_told_apart_and_a_new_study_is_offered(where: Where, tmp_path: Path) -> None:
    shared(where(), a_space(tmp_path))
    other = (
        SPACE.replace("high: 1.0e-1", "high: 1.0").replace("length: 16", "length: 32").replace("[grm, ssc]", "[ssc]")
    )
    with pytest.raises(ConfigError) as caught:
        shared(where(), a_space(tmp_path, other))
    text = str(caught.value)
    assert "study s searches a different space: " in text
    assert "space train.lr was 0.001 to 0.1 (log), now it is 0.001 to 1.0 (log)" in text
    assert "space model.mixer.aggregate was [grm, ssc], now it is [ssc]" in text
    assert "base task.length was 16, now it is 32" in text
    assert text.endswith("--study s-2")
    shared(where(), a_space(tmp_path, other), name="s-2")
    shared(where(), a_space(tmp_path, sampler="tpe", pruner="median"))  # how one searches is no part of it


def test_a_study_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    place = journal(tmp_path)
    optuna.create_study(study_name="s", storage=place.open()).enqueue_trial({"x": 1})
    with pytest.raises(ConfigError, match="was not made by mclab; give another name with --study"):
        shared(place, a_space(tmp_path))


def test_a_study_of_somebody_elses_without_trials_is_left_alone(tmp_path: Path) -> None:
    place = journal(tmp_path)
    storage = place.open()
    optuna.create_study(study_name="s", storage=storage, direction="minimize")
    optuna.create_study(study_name="t", storage=storage, direction="maximize").set_user_attr("whose", "theirs")
    for name in "st":
        with pytest.raises(ConfigError, match=f"study {name} was not made by mclab; give another name with --study"):
            shared(place, a_space(tmp_path), name=name)
    assert optuna.load_study(study_name="t", storage=place.open()).user_attrs == {"whose": "theirs"}


def test_a_changed_base_under_a_conditional_axis_is_noticed(tmp_path: Path) -> None:
    """The base's value is what a run has wherever the axis is not."""
    text = f"{BASE}\nspace:\n  model.mixer.gate: [context, none]\n  train.lr: [1.0e-3, 1.0e-2]\n"
    text += "when: {train.lr: {model.mixer.gate: none}}\n"
    shared(journal(tmp_path), a_space(tmp_path, text))
    with pytest.raises(ConfigError, match=r"base train\.lr was [0-9.]+, now it is 0\.02"):
        shared(journal(tmp_path), a_space(tmp_path, text.replace("steps: 4", "steps: 4, lr: 0.02")))


def test_anybody_can_open_the_study(where: Where, tmp_path: Path) -> None:
    """optuna-dashboard opens what `load_study` opens, with Optuna's own lock."""
    space = a_space(tmp_path)
    work_off(shared(where(), space, 3), [])
    plain = where().open()
    if isinstance(plain, JournalStorage):
        plain = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    study = optuna.load_study(study_name="s", storage=plain)
    assert study.metric_names == ["valid.accuracy"]
    assert (study.best_trial.value, study.best_trial.intermediate_values) == (0.1, {2: 0.1})


def test_a_look_that_is_no_number_hurts_no_study(where: Where, tmp_path: Path) -> None:
    """optuna-examples#40: NaN met a NOT NULL column."""
    study = shared(where(), a_space(tmp_path), 2)
    claim = study.claim()
    assert claim is not None
    assert study.finish(claim, End("diverged", looks={1: float("nan"), 2: float("inf")}, facts={"diverged_step": 2}))
    (found,) = study.trials()
    assert (found.status, found.diverged_step, found.values) == ("diverged", 2, None)


def test_points_that_break_a_rule_are_refused_and_do_not_count(tmp_path: Path) -> None:
    text = SPACE.replace("[context, input, none]", "[input, none]").replace("[grm, ssc]", "[grm, soup]")
    text = text.replace("aggregate: ssc}", "aggregate: grm}").replace(
        "segment: 4", "segment: 4, memory: dla, gate: input"
    )
    study = shared(journal(tmp_path), a_space(tmp_path, text), 12)
    work_off(study, [])
    found = study.trials()
    refused = [trial for trial in found if trial.status == "refused"]
    assert refused
    assert all(trial.params["model.mixer.gate"] == "none" for trial in refused)
    assert all("soup sums the weight matrices" in (trial.error or "") for trial in refused)
    assert sum(trial.counts for trial in found) == 12


def test_a_space_in_which_every_point_breaks_a_rule_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mclab.sweep.study.HOPELESS", 7)
    text = SPACE + "exclude: [{model.dim: 8}]\n"
    with pytest.raises(ConfigError, match="7 points in a row had keys that contradict each other"):
        shared(journal(tmp_path), a_space(tmp_path, text)).claim()


def test_an_interrupt_gets_through_between_refused_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of them may take minutes."""
    study = shared(journal(tmp_path), a_space(tmp_path, SPACE + "exclude: [{model.dim: 8}]\n"))
    drawn, following = list[int](), study._next

    def interrupted(trials: Sequence[FrozenTrial], begun: FrozenTrial | None, stubborn: bool) -> Claim | None:
        drawn.append(len(trials))
        if len(drawn) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return following(trials, begun, stubborn)

    monkeypatch.setattr(study, "_next", interrupted)
    monkeypatch.setattr("mclab.sweep.study.HOPELESS", 20)
    with pytest.raises(KeyboardInterrupt):
        study.claim()
    assert len(drawn) == 3
    assert {trial.status for trial in study.trials() if trial.params} == {"refused"}

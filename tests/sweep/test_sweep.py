"""`mclab sweep` from the file to the table."""

import json
from pathlib import Path

import psycopg
import pytest

from mclab.config.ids import run_id
from mclab.config.run import RunConfig
from mclab.plan.space_load import load_space
from mclab.plan.space_trials import from_dict
from mclab.store import StoreError
from tests.commands import fine, mclab, one_line, records
from tests.sweep.bench import BASE, SIX, SPACE, TWELVE, FakeTraining, frozen, journal, space_file, trials


def words(path: Path, *more: object) -> tuple[object, ...]:
    return ("sweep", "--space", path, "--out", "o", "--workers", 1, *more)


def test_a_real_search_from_the_file_to_the_table(here: Path) -> None:
    done = fine(*words(space_file(here), "--trials", 3))
    assert "this command: 3 done; study s: 3 of 3 trials, 3 distinct points" in done.err
    assert len(records(here / "o")) == 3
    found = from_dict(json.loads((here / "o" / "trials.json").read_text()))
    base = load_space("s.yaml").base_point()
    first = found.trials[0]
    assert (first.params["train.lr"], first.run_ids) == (0.01, base.run_ids)
    record = records(here / "o")[first.run_ids[0]]
    assert first.metrics["test.accuracy"] == record["test"]["all"]["accuracy"]
    assert first.values == (record["valid"]["all"]["accuracy"],)
    assert first.metrics["state_floats"] == record["state_fixed"] + record["state_cached"]
    assert (here / "o" / "space.yaml").read_bytes() == (here / "s.yaml").read_bytes()


def test_the_same_command_goes_on_to_as_many_as_asked(here: Path, training: FakeTraining) -> None:
    path = space_file(here)
    fine(*words(path, "--trials", 3))
    assert "no trial; study s: 3 trials (2 asked for)" in fine(*words(path, "--trials", 2)).err
    fine(*words(path, "--trials", 5))
    assert len(training.asked) == len(set(training.asked)) == 5
    assert [trial["status"] for trial in trials(here / "o")] == ["done"] * 5


def test_points_that_were_measured_are_answered_and_counted(here: Path, training: FakeTraining) -> None:
    """optuna#2021, #5440: TPE repeats identical points."""
    done = fine(*words(space_file(here, TWELVE), "--trials", 24))
    found = trials(here / "o")
    distinct = {tuple(trial["run_ids"]) for trial in found}
    assert len(found) == 24
    assert len(training.asked) == len(distinct) <= 12
    assert f"24 done ({24 - len(distinct)} of them answered from stored results)" in done.err
    assert f"24 of 24 trials, {len(distinct)} distinct points" in done.err
    for trial in found:
        if trial["repeat_of"] is not None:
            first = found[trial["repeat_of"]]
            assert (first["run_ids"], first["values"], first["repeat_of"]) == (trial["run_ids"], trial["values"], None)


def test_what_the_store_holds_is_not_trained_again(here: Path, training: FakeTraining) -> None:
    path = space_file(here)
    fine(*words(path, "--trials", 4))
    fine(*words(path, "--trials", 4, "--study", "again"))  # the same seed: the same points
    assert len(training.asked) == 4
    assert [trial["run_ids"] for trial in trials(here / "o")] == [[name] for name in training.asked]


def test_what_another_folder_measured_is_answered_from_the_study(here: Path, training: FakeTraining) -> None:
    path = space_file(here, TWELVE)
    fine(*words(path, "--trials", 20, "--storage", "shared.log"))
    trained = len(training.asked)
    done = fine(*words(path, "--trials", 60, "--storage", "shared.log", "--out", "p"))
    assert len(training.asked) == len(set(training.asked)) <= 12
    assert len(records(here / "p")) == len(training.asked) - trained
    assert "60 of 60 trials, 12 distinct points" in done.err
    assert all(trial["values"] for trial in trials(here / "p"))


def test_keys_that_change_nothing_make_no_new_point(here: Path, training: FakeTraining) -> None:
    text = (
        f"{BASE}\nspace:\n  model.mixer.gate: [input, none]\n  model.mixer.connector: [own, shared]\nsampler: random\n"
    )
    fine(*words(space_file(here, text), "--trials", 8))
    found = trials(here / "o")
    assert len({str(trial["params"]) for trial in found}) == 4
    assert len(training.asked) == 2
    assert {tuple(trial["inert"]) for trial in found} == {("model.mixer.connector",)}


def test_a_diverged_trial_stays_with_its_step_and_is_none_of_the_best(here: Path) -> None:
    """optuna#2727, #136: the result of a NaN is lost. Under each pruner (optuna-examples#40)."""
    text = f"{BASE}\nspace:\n  train.lr: [1.0e-2, 1.0e+30]\nsampler: grid\n"
    for pruner in ("none", "median"):
        done = mclab(*words(space_file(here, text), "--trials", 2, "--pruner", pruner, "--study", pruner))
        assert done.code == 3
        good, bad = trials(here / "o")
        assert (good["status"], bad["status"], bad["values"]) == ("done", "diverged", None)
        assert bad["diverged_step"] == records(here / "o")[bad["run_ids"][0]]["diverged_step"] >= 1
        assert [trial.number for trial in from_dict(json.loads((here / "o/trials.json").read_text())).best()] == [0]
        states = [trial.state.name for trial in frozen(journal(here / "o"), pruner)]
        assert states == ["COMPLETE", "FAIL"]
    assert (
        "trial 1 (lr=1e+30): diverged at step "
        in mclab(*words(space_file(here, text, "t.yaml"), "--trials", 2, "--out", "p")).err
    )


def test_cells_of_a_grid_that_failed_are_tried_again(here: Path, training: FakeTraining) -> None:
    """optuna#3256: a failed cell counts as visited and is never retried."""
    path = space_file(here, SIX)
    points = load_space(path).listed()
    failing = [load_space(path).point(point).run_ids[0] for point in points[1:3]]
    training.statuses = {failing[0]: "failed", failing[1]: "oom"}
    first = mclab(*words(path, "--trials", 100))
    assert (first.code, len(training.asked)) == (3, 6)
    assert "study s: 6 of 6 trials, 6 distinct points" in first.err
    assert "--retry-failed tries the failed trials again" in first.err
    assert mclab(*words(path, "--trials", 100)).code == 3
    assert len(training.asked) == 6
    training.statuses = {}
    again = fine(*words(path, "--trials", 100, "--retry-failed"))
    assert "2 failed trials will be tried again" in again.err
    assert training.asked[6:] == failing
    found = from_dict(json.loads((here / "o/trials.json").read_text()))
    assert len(found.done) == 6
    assert sorted(trial.retry_of for trial in found.trials if trial.retry_of is not None) == [1, 2]


def test_failures_may_stop_it_and_it_goes_on(here: Path, training: FakeTraining) -> None:
    training.statuses = {load_space(space_file(here)).base_point().run_ids[0]: "failed"}
    done = mclab(*words(here / "s.yaml", "--trials", 4, "--fail-fast"))
    assert (done.code, len(training.asked)) == (3, 1)
    assert "trial 0 (gate=context, aggregate=grm, lr=0.01): failed: broken on purpose" in done.err
    assert "stopped after 1 failed trial" in done.err
    assert mclab(*words(here / "s.yaml", "--trials", 4)).code == 3
    assert len(training.asked) == 4


def test_a_trial_averages_over_its_seeds(here: Path, training: FakeTraining) -> None:
    training.score = lambda run: 0.1 * (1 + run.seed)
    fine(*words(space_file(here), "--trials", 2, "--repeats", 3, "--seed", 5))
    for trial in trials(here / "o"):
        assert len(trial["run_ids"]) == 3
        assert trial["values"] == [pytest.approx((0.6 + 0.7 + 0.8) / 3)]
    base = load_space(here / "s.yaml", repeats=3, seed=5).base_point()
    assert training.asked[:3] == list(base.run_ids)
    assert [run.seed for run in base.runs] == [5, 6, 7]


def test_one_bad_seed_ends_a_trial_as_that(here: Path, training: FakeTraining) -> None:
    path = space_file(here)
    training.statuses = {load_space(path, repeats=2).base_point().run_ids[1]: "diverged"}
    assert mclab(*words(path, "--trials", 1, "--repeats", 2)).code == 3
    (trial,) = trials(here / "o")
    assert (trial["status"], trial["values"], trial["diverged_step"]) == ("diverged", None, 3)


def test_two_objectives_have_a_front(here: Path, training: FakeTraining) -> None:
    text = f"{BASE}\nspace:\n  model.dim: {{low: 8, high: 16, step: 8}}\n  train.lr: [1.0e-3, 1.0e-2]\n"
    training.score = lambda run: run.train.lr * run.model.dim
    path = space_file(here, f"{text}objective: [valid.accuracy, state_floats]\nsampler: grid\n")
    done = fine(*words(path, "--trials", 4))
    found = from_dict(json.loads((here / "o/trials.json").read_text()))
    assert [(each.metric, each.direction) for each in found.objectives] == [
        ("valid.accuracy", "maximize"), ("state_floats", "minimize"),
    ]  # fmt: skip
    assert [trial.values for trial in found.front()] == [(0.08, 80.0), (0.16, 160.0)]
    assert done.out


def test_json_is_the_study(here: Path, training: FakeTraining) -> None:
    facts = fine(*words(space_file(here), "--trials", 2, "--json")).json
    assert (facts["finished"], facts["ran"], facts["answered"]) == (2, {"done": 2}, 0)
    assert from_dict({key: facts[key] for key in json.loads((here / "o/trials.json").read_text())}).asked == 2


def test_overrides_change_the_base_but_no_axis(here: Path, training: FakeTraining) -> None:
    path = space_file(here)
    one_line(mclab(*words(path, "train.lr=0.1", "--trials", 1)), "train.lr=0.1: train.lr: ", "varies train.lr")
    fine(*words(path, "train.steps=3", "--trials", 1))
    (name,) = records(here / "o")
    assert name == run_id(load_space(path, ["train.steps=3"]).base_point().runs[0])


def test_a_folder_of_a_grid_is_none_for_a_search(here: Path, training: FakeTraining) -> None:
    (here / "o").mkdir()
    (here / "o" / "plan.json").write_text("{}")
    one_line(
        mclab(*words(space_file(here), "--trials", 1)), "o holds a grid of mclab ablate; give another folder with --out"
    )


def test_trials_of_one_shape_train_together_and_others_apart(here: Path, training: FakeTraining) -> None:
    """As on a GPU: the device is no matter to a training that trains nothing."""
    text = (
        f"{BASE}\nspace:\n  model.dim: [8, 16]\n  train.lr: {{low: 1.0e-3, high: 1.0e-1, log: true}}\nsampler: random\n"
    )
    from mclab.cli.progress import Lines
    from mclab.config.options import RunOptions
    from mclab.store import Store
    from mclab.sweep.search import Search
    from tests.sweep.bench import a_space, shared

    space = a_space(here, text)
    with Store(here / "o") as store:
        study = shared(journal(here / "o"), space, 16)
        Search(study, store, RunOptions("cuda", 1), Lines(print), print).go()
    assert sum(training.packs) == 16
    assert len(training.packs) == 2


def test_a_database_that_is_gone_is_a_line_and_what_was_measured_stays(
    here: Path, training: FakeTraining, server: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mclab.sweep.storage.PATIENCE", 0.0)

    def drop(run: RunConfig) -> None:
        if len(training.asked) == 2:
            with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {database.rpartition('/')[2]} WITH (FORCE)")

    training.before = drop
    done = mclab(*words(space_file(here), "--trials", 5, "--storage", database))
    assert done.code == 2
    last = done.err.splitlines()[-1]
    assert last.startswith(f"{database} has not answered for 0 s (")
    assert last.endswith("all stored results are kept and entered into the study, and the search continues")
    assert "Traceback" not in done.err
    assert len(records(here / "o")) == 3


def test_a_fault_in_the_middle_gives_trials_up_for_the_next_command(
    here: Path, training: FakeTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process that lives on, as a notebook's does: nobody could tell that nobody works on them."""

    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr("mclab.store.folder.Store.put", full)
        one_line(mclab(*words(space_file(here), "--trials", 3)), "the disk is full")
    fine(*words(here / "s.yaml", "--trials", 3))
    found = trials(here / "o")
    assert [trial["status"] for trial in found] == ["lost", "done", "done", "done"]
    assert (found[1]["retry_of"], found[1]["params"]) == (0, found[0]["params"])


def test_a_refused_space_leaves_the_one_that_is_stored(here: Path, training: FakeTraining) -> None:
    fine(*words(space_file(here), "--trials", 1))
    before = (here / "o" / "space.yaml").read_bytes()
    other = space_file(here, SPACE.replace("high: 1.0e-1", "high: 1.0"))
    one_line(mclab(*words(other, "--trials", 2)), "study s searches a different space: space train.lr was")
    assert (here / "o" / "space.yaml").read_bytes() == before


def test_points_in_flight_at_once_are_one_run_and_its_repeats(here: Path, training: FakeTraining) -> None:
    """On a GPU's worker, all trials are claimed before the first ends."""
    from mclab.cli.progress import Lines
    from mclab.config.options import RunOptions
    from mclab.store import Store
    from mclab.sweep.search import Search
    from tests.sweep.bench import a_space, shared

    space = a_space(here, f"{BASE}\nspace:\n  train.lr: [1.0e-2]\nsampler: random\n")
    with Store(here / "o") as store:
        study = shared(journal(here / "o"), space, 6)
        search = Search(study, store, RunOptions("cuda", 1), Lines(print), print)
        search.go()
    found = study.trials()
    assert len(training.asked) == 1
    assert [trial.repeat_of for trial in found] == [None, *[0] * 5]
    assert [trial.duration_s for trial in found] == [1.0, *[None] * 5]
    assert {trial.values for trial in found} == {found[0].values}
    assert (search.tally.ran.total(), search.tally.answered) == (6, 5)


def test_what_failed_is_tried_again_though_fewer_are_asked_for(here: Path, training: FakeTraining) -> None:
    path = space_file(here)
    training.statuses = {load_space(path).base_point().run_ids[0]: "failed"}
    assert mclab(*words(path, "--trials", 5)).code == 3
    training.statuses = {}
    again = fine(*words(path, "--trials", 4, "--retry-failed"))
    assert "1 failed trial will be tried again" in again.err
    assert "this command: 1 done; study s: 5 of 5 trials" in again.err


def test_optunas_trials_carry_what_its_dashboard_plots(here, training):
    """The dashboard plots user attributes that are numbers, and no mappings."""
    path = space_file(here, SIX)
    training.statuses = {}
    fine("sweep", "--space", path, "--trials", 6, "--out", "o", "--workers", 1)
    found = frozen(journal(here / "o"))
    assert len(found) == 6
    for trial in found:
        assert trial.user_attrs["valid.accuracy"] == trial.value
        numbers = {
            name: trial.user_attrs[name] for name in ("valid.loss", "test.accuracy", "state_floats", "tokens_per_s")
        }
        assert all(isinstance(value, float) for value in numbers.values())
        assert numbers["state_floats"] == 80.0

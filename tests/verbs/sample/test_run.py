"""A stored run by the first digits of its id."""

import json
import shlex
from itertools import pairwise

import pytest

from mclab.config.ids import run_id
from mclab.config.outcome import Outcome
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.store.find import Stored
from mclab.verbs.sample import run as of_run
from mclab.verbs.sample.run import training
from tests.stored import alter, done
from tests.verbs.sample.bench import small_run, stored

DONE = done(small_run())
KEPT = done(small_run(), weights=b"here")


def find(digits, folder=None, said=None):
    return of_run.find(digits, folder, [].append if said is None else said.append)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_in_a_folder_and_below_runs_by_its_digits(here):
    name = stored(here / "runs/one", small_run(), KEPT)
    assert find(name[:5]).run_id == name
    assert find(name).folder.name == "one"
    assert find(name, here / "runs/one") == Stored(here / "runs/one", name)
    assert find(name).weights.read_bytes() == b"here"


def test_of_two_copies_the_one_with_weights(here):
    name = stored(here / "runs/bare", small_run(), DONE)
    stored(here / "runs/kept", small_run(), KEPT)
    said = []
    assert find(name, said=said).folder.name == "kept"
    assert said == []
    stored(here / "runs/zebra", small_run(), KEPT)
    assert find(f"{name.upper()}.json", said=said).folder.name == "kept"
    assert said == [f"run {name} is stored in runs/kept and runs/zebra; the copy in runs/kept is used"]


@pytest.mark.parametrize(
    ("digits", "message"),
    [
        ("xyz", "'xyz' is no run id"),
        ("", "'' is no run id"),
        ("0" * 17, "is no run id"),
        ("0" * 16, "no run id in runs begins with these digits; mclab list FOLDER prints the run ids"),
    ],
)
def test_digits_that_name_none(here, digits, message):
    stored(here / "runs/one", small_run(), KEPT)
    with pytest.raises(ConfigError, match=message):
        find(digits)


def test_digits_that_name_several(here):
    names = sorted(stored(here / "runs/many", small_run(seed=seed), KEPT) for seed in range(17))
    first = next(a[0] for a, b in pairwise(names) if a[0] == b[0])  # 17 ids, 16 first digits
    with pytest.raises(
        ConfigError, match=rf"{first}: \d+ run ids in runs begin with these digits: {first}\w+, {first}"
    ) as caught:
        find(first)
    assert "\n" not in str(caught.value)


def test_folders_that_are_none(here):
    (here / "empty").mkdir()
    with pytest.raises(ConfigError, match="no such run folder"):
        find("ab", here / "nowhere")
    with pytest.raises(ConfigError, match="holds no records"):
        find("ab", here / "empty")


def test_without_weights_it_says_the_command_that_keeps_them(here):
    run = small_run(seed=3)
    name = stored(here / "runs/one", run, DONE)
    with pytest.raises(
        ConfigError, match=f"run {name} is stored without weights; train it again into another folder"
    ) as said:
        find(name[:6])
    command = str(said.value).partition("another folder: ")[2]
    assert command == f"{training(run)} --save-weights --out runs/one-weights"


@pytest.mark.parametrize(
    "run",
    [
        small_run(),
        small_run(seed=7, model={"mixer": {"aggregate": "ssc", "scale": 0.1}}, train={"lr": 0.003}),
        small_run(task={"pairs": [2], "filler": "random"}, eval={"task": [{"length": 32, "pairs": [2, 4]}]}),
        small_run(model={"mixer": {"name": "attention", "window": 4}}),
    ],
)
def test_the_command_trains_the_same_run(run):
    words = shlex.split(training(run))
    assert words[:2] == ["mclab", "train"]
    plan = plan_from({}, "train", words[2:], None, False)
    assert list(plan.cells[0].candidates[0].run_ids().values()) == [run_id(run)]


def test_a_run_that_diverged_left_none(here):
    name = stored(here / "runs/one", small_run(), Outcome("diverged", diverged_step=1))
    with pytest.raises(ConfigError, match=f"run {name} has no weights, because it is diverged"):
        find(name)


def test_a_run_of_another_science_cannot_be_trained_again(here):
    name = stored(here / "runs/one", small_run(), DONE)
    path = here / "runs/one/records" / f"{name}.json"
    config = json.loads(path.read_text())["config"]
    alter(path, science=0, config={**config, "gone": 1})
    with pytest.raises(
        ConfigError, match=f"run {name} is stored without weights, and this version of mclab cannot"
    ) as said:
        find(name)
    assert "\n" not in str(said.value)

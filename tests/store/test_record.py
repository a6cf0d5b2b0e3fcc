"""A record and the stored run that is read from it: nothing is lost or made up between the two."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from mclab.config.ids import SCIENCE, canonical, run_id
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.store.files import json_bytes
from mclab.store.frame import frame_of
from mclab.store.record import as_record, read_record, record_of
from mclab.verbs.show import Found, as_dict, figures, idle_keys, keys_of
from tests.stored import altered, done, measured, score, scores, stored_run, unsigned

FIXTURE = Path(__file__).parents[1] / "fixture"
RUN = RunConfig.model_validate({"seed": 3, "train": {"lr": 0.003}, "model": {"mixer": {"aggregate": "ssc", "k": 1}}})
DONE = Outcome(
    "done",
    steps=600,
    valid=measured(RUN, 0.5, 1.5),
    test={**measured(RUN, 0.0, 0.0), ALL: Score(0.25, 0.1, 0.5), "pairs=4": Score(0.75, 0.1 + 0.2)},
    steps_to_99=550,
    overlap=0.0,
    params=7,
    state_fixed=64,
    state_cached=128,
    tokens_per_s=1e5 / 3,
    wall_s=1e-7,
    provenance={"device": "cpu", "pack": 2, "nested": {"γ": [1, None]}},
    curve=({"step": 1},),
    weights=b"w",
)
FAILED = Outcome("failed", error="RuntimeError: γ \udcff\nout of luck", provenance={"device": "cpu"})
PARTS = (ALL, *RUN.task.slices)
ENDINGS = ("", *(f"[{part}]" for part in PARTS[1:]))
DIVERGED = Outcome("diverged", steps=12, diverged_step=12)


def written(outcome: Outcome = DONE, **changes: object) -> bytes:
    """A record as it stands in its file, with keys changed or added."""
    return altered(json_bytes(record_of(RUN, outcome)), **changes)


def read(data: bytes) -> StoredRun:
    return read_record(data, json.loads(data)["run_id"])


def test_a_record_holds_these_keys_in_this_order() -> None:
    record = json.loads(written())
    checksum = sha256(json.dumps({k: v for k, v in record.items() if k != "sha256"}, sort_keys=True).encode())
    config = record.pop("config")
    assert list(record) == [
        *("run_id", "science", "seed", "status", "steps", "valid", "test", "steps_to_99", "overlap", "params"),
        *("state_fixed", "state_cached", "tokens_per_s", "wall_s", "diverged_step", "error", "provenance"),
        *("curve_sha256", "sha256"),
    ]
    assert list(config)[:3] == ["seed", "task.name", "task.vocab"]
    assert (config["seed"], config["train.lr"], config["task.pairs"]) == (3, 0.003, [4, 8, 16])
    assert record.pop("sha256") == checksum.hexdigest()
    assert record == {
        "run_id": run_id(RUN),
        "science": SCIENCE,
        "seed": 3,
        "status": "done",
        "steps": 600,
        "valid": {part: {"accuracy": 0.5, "loss": 1.5, "token_accuracy": None} for part in PARTS},
        "test": {
            ALL: {"accuracy": 0.25, "loss": 0.1, "token_accuracy": 0.5},
            "pairs=4": {"accuracy": 0.75, "loss": 0.1 + 0.2, "token_accuracy": None},
            **{part: {"accuracy": 0.0, "loss": 0.0, "token_accuracy": None} for part in PARTS[2:]},
        },
        "steps_to_99": 550,
        "overlap": 0.0,
        "params": 7,
        "state_fixed": 64,
        "state_cached": 128,
        "tokens_per_s": 1e5 / 3,
        "wall_s": 1e-7,
        "diverged_step": None,
        "error": None,
        "provenance": {"device": "cpu", "pack": 2, "nested": {"γ": [1, None]}},
        "curve_sha256": sha256(b'{"step": 1}\n').hexdigest(),
    }


OLD_SCORES = {ALL: {"accuracy": 0.5, "loss": None}, **{part: {"accuracy": 0.5} for part in PARTS[1:]}}


@pytest.mark.parametrize(
    "data",
    [
        written(),
        written(FAILED),
        written(DIVERGED),
        written(done(RUN, 0.0, float("nan"))),
        written(test=OLD_SCORES),
        written(test={**OLD_SCORES, ALL: {"accuracy": 0.5, "loss": 1.0, "token_accuracy": None, "calibration": 0.1}}),
        written(provenance=None, overlap=None, steps=None),
        written(of_a_later_version={"a": [1]}),
        written(science=0, run_id="a" * 16, config={"seed": 3, "gone": 1}),
        unsigned(written()),
    ],
    ids=["done", "failed", "diverged", "nan", "old", "metric", "null", "later", "science", "unsigned"],
)
def test_reading_and_writing_gives_equal_bytes(data: bytes) -> None:
    assert json_bytes(as_record(read(data))) == data


@pytest.mark.parametrize("folder", ["grid", "sweep"])
def test_the_stored_records_of_the_fixture_are_written_as_they_were(folder: str) -> None:
    paths = sorted((FIXTURE / folder / "records").glob("*.json"))
    assert paths
    for path in paths:
        assert json_bytes(as_record(read_record(path.read_bytes(), path.stem))) == path.read_bytes()


def test_what_is_read_is_what_was_measured() -> None:
    found = read(written())
    assert (found.run_id, found.science, found.seed, found.config) == (run_id(RUN), SCIENCE, 3, RUN)
    assert (found.status, found.steps, found.steps_to_99, found.overlap) == ("done", 600, 550, 0.0)
    assert (found.params, found.state_fixed, found.state_cached) == (7, 64, 128)
    assert (found.tokens_per_s, found.wall_s) == (1e5 / 3, 1e-7)
    assert (found.diverged_step, found.error) == (None, None)
    assert {part: (one.accuracy, one.loss, one.token_accuracy) for part, one in found.test.items()} == {
        ALL: (0.25, 0.1, 0.5),
        "pairs=4": (0.75, 0.1 + 0.2, None),
        **dict.fromkeys(PARTS[2:], (0.0, 0.0, None)),
    }
    assert found.valid[ALL].accuracy == 0.5
    assert (found.fact("device"), found.fact("pack"), found.fact("torch")) == ("cpu", "2", None)
    assert found.fact("device_name", "device") == "cpu"
    assert read(written(DIVERGED)).diverged_step == 12
    assert read(written(FAILED)).error == FAILED.error


def test_what_an_old_record_lacks_is_none() -> None:
    found = read(altered(written(test=OLD_SCORES), "overlap", "provenance", "state_cached"))
    assert (found.overlap, found.provenance, found.state_cached, found.fact("device")) == (None, None, None, None)
    assert (found.test[ALL].loss, found.test["pairs=4"].loss, found.test[ALL].token_accuracy) == (None, None, None)
    columns = frame_of([found]).columns
    assert [name for name in columns if name.startswith("test_")] == [
        *("test_accuracy", "test_loss", *(f"test_accuracy[{part}]" for part in PARTS[1:])),
    ]
    assert as_dict(Found(Path("runs/x"), found, []))["test"] == OLD_SCORES


@pytest.mark.parametrize("config", [{"seed": 3, "gone": 1}, {"seed": 3, "train": 1, "train.lr": 2}, {}])
def test_keys_of_another_science_stand_as_they_are(config: dict[str, object]) -> None:
    """They may describe no run here; those that do are read as one."""
    found = read(written(science=0, config=config))
    assert found.keys == config
    assert found.config == (None if config else canonical(RunConfig()))
    if found.config is None:
        assert keys_of(found) == ({path: value for path, value in config.items() if path != "seed"}, {})
        assert idle_keys(found) == frozenset()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"science": 0, "config": [1]}, "has a config that is not valid"),
        ({"science": None}, "has null for science, which must be a whole number"),
        ({"science": 0, "seed": None}, "has null for seed, which must be a whole number"),
        ({"seed": None}, f"has a config that does not fit its run_id and seed: it is the config of run {run_id(RUN)}"),
        ({"seed": 4}, f"has a config that does not fit its run_id and seed: it is the config of run {run_id(RUN)}"),
    ],
)
def test_no_stored_run_is_made_of_a_head_that_says_nothing(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read(written(**changes))


def test_show_and_frame_hold_the_whole_record() -> None:
    """Also what a later version has put there; in an order that stays."""
    found = read(written(later="x"))
    shown = as_dict(Found(Path("runs/x"), found, [{"step": 1}]))
    assert list(shown) == [
        *("folder", "status", "steps", "valid", "test", "steps_to_99", "overlap", "params", "state_fixed"),
        *("state_cached", "tokens_per_s", "wall_s", "diverged_step", "error", "provenance"),
        *("run_id", "science", "seed", "curve_sha256", "sha256", "later", "config", "differs", "curve"),
    ]
    assert shown["differs"] == ["task.name", "model.mixer.name", "model.mixer.aggregate", "model.mixer.k", "train.lr"]
    assert {**shown["config"], "seed": 3} == found.keys
    frame = frame_of([found])
    assert frame.columns[:5] == ["run_id", "science", "seed", "status", "task.name"]
    scored = [f"test_{metric}" for metric in ("accuracy", "loss", "token_accuracy")]
    at = frame.columns.index("valid_accuracy")
    of_valid = [name.replace("test", "valid") for name in scored]
    assert frame.columns[at:] == [
        *(name + ending for names in (of_valid, scored) for ending in ENDINGS for name in names),
        *("steps", "steps_to_99", "overlap", "params", "state_fixed", "state_cached", "tokens_per_s", "wall_s"),
        *("diverged_step", "error", "later", "provenance.device", "provenance.pack", "provenance.nested"),
    ]


def test_figures_are_told_where_they_were_measured() -> None:
    found = stored_run(RUN, steps=600, overlap=0.0, wall_s=1.5, test=scores((), 0.5), valid={"pairs=4": score(0.5)})
    assert list(figures(found)) == [("steps", 600), ("overlap", 0.0), ("wall_s", 1.5)]

"""What a disk or an editor does to a run folder is noticed: nothing that has changed is taken for a result."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from mclab.config.ids import run_id
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.runner import execute
from mclab.store import Records, Store
from mclab.store.files import json_bytes
from mclab.store.record import as_record, read_record
from mclab.train.weights import load_model
from tests.commands import fine, mclab, one_line
from tests.damage import readers, trained, unnoticed
from tests.stored import done, unsigned
from tests.train.test_loop import run_config

RUN = run_config(checkpoint_every=20)
NAME = run_id(RUN)
CHANGED = "does not match its checksum (sha256): something in it has changed since it was written"
GRID = {"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..1"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder that tests leave as it is."""
    folder = tmp_path_factory.mktemp("whole")
    trained(folder, RUN)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(whole, tmp_path / "runs/one"))


@pytest.mark.parametrize("kind", ["record", "curve", "checkpoint", "weights"])
def test_every_flipped_bit_is_noticed_or_changes_nothing(whole: Path, kind: str) -> None:
    path, read = readers(whole, RUN)[kind]
    assert list(unnoticed(path, read, flips=50)) == []


def test_an_edited_record_is_no_result(folder: Path) -> None:
    """Also where its figures agree with each other, and one from before there were checksums where they do not."""
    path = folder / "records" / f"{NAME}.json"
    record = json.loads(path.read_bytes())
    better = {part: {**score, "accuracy": 1.0} for part, score in record["test"].items()}
    one = {**record["test"], "all": better["all"]}
    bare = {key: value for key, value in record.items() if "sha256" not in key}
    said: list[str] = []
    for edited, reason in (
        ({**record, "test": better}, f"the record {CHANGED}"),
        ({**record, "wall_s": 1.0}, f"the record {CHANGED}"),
        ({**record, "curve_sha256": "0" * 64}, f"the record {CHANGED}"),
        ({**bare, "curve_sha256": record["curve_sha256"]}, "the record has lost its checksum (sha256)"),
        ({**bare, "test": one}, "the record has 1.0 for test all accuracy, but the mean over its slices is"),
        ({**bare, "test": {}}, "the record has the status done but no test scores of all"),
    ):
        path.write_text(json.dumps(edited))
        assert Records(folder, say=said.append).lookup(NAME) is None
        assert said.pop().startswith(f"{path}: {reason}")
        assert said == []
    path.write_text(json.dumps(record, indent=4, sort_keys=True))  # another layout is no other content
    assert Records(folder, say=said.append).lookup(NAME) is not None
    assert said == []


def test_what_is_damaged_is_trained_again_and_nothing_of_it_lost(tmp_path: Path) -> None:
    plan, now, said = plan_from(GRID, "g"), list[str](), list[str]()

    def train(runs: Sequence[RunConfig], **_: object) -> list[Outcome]:
        now.extend(map(run_id, runs))
        return [done(run) for run in runs]

    with Store(tmp_path) as store:
        execute(plan, store, train=train)
    name, paths = now[0], sorted((tmp_path / "records").iterdir())
    now.clear()
    path = tmp_path / "records" / f"{name}.json"
    spoilt = path.read_bytes().replace(b'"steps": 0', b'"steps": 1')
    path.write_bytes(spoilt)
    with Store(tmp_path, say=said.append) as store:
        assert store.lookup(name) is None
        assert path.read_bytes() == spoilt
        execute(plan, store, train=train)
    assert now == [name]
    kept = path.with_name(f"{path.name}.damaged")
    assert said == [
        f"{path}: the record {CHANGED}; the run counts as missing",
        f"{path}: the record is damaged; the damaged file is kept as {kept.name}",
    ]
    assert kept.read_bytes() == spoilt
    assert sorted((tmp_path / "records").iterdir()) == sorted([*paths, kept])
    assert len(Records(tmp_path, say=pytest.fail).scan()) == 4


def test_a_run_of_before_checksums_loads_with_a_note(folder: Path) -> None:
    note = "stored without checksums by an earlier version of mclab, so damage to its files may go unnoticed"
    assert note not in fine("show", NAME, folder).out
    assert {"sha256", "curve_sha256"} <= fine("show", NAME, folder, "--json").json.keys()
    path = folder / "records" / f"{NAME}.json"
    path.write_bytes(unsigned(path.read_bytes()))
    shown = fine("show", NAME, folder)
    assert (shown.out.splitlines()[1], shown.err) == (note, "")
    assert not {"sha256", "curve_sha256"} & fine("show", NAME, folder, "--json").json.keys()
    assert json_bytes(as_record(read_record(path.read_bytes(), NAME))) == path.read_bytes()


def test_weights_that_have_changed_answer_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "weights" / f"{NAME}.safetensors"
    path.write_bytes(path.read_bytes()[:-40] + bytes(40))
    way = "to have them again, train the run with --save-weights and another --out"
    with pytest.raises(ConfigError) as caught:
        load_model(folder)
    assert str(caught.value) == f"{path}: {CHANGED}; {way}"
    monkeypatch.chdir(folder.parents[1])
    one_line(mclab("sample", "--run", NAME), f"runs/one/weights/{path.name}: {CHANGED}; {way}")


# ---- curves ----

LOOK = b'{"step": 10, "valid": {"all": {"accuracy": 0.5, "loss": 1.0}}}\n'
MISSING = "there is no such file; the curve is left out"
ANOTHER = "the curve is not the one that was stored with the run's record, so it is left out"
AFTER = "the curve is damaged after line {}; the rest is left out"
#: What stands in the curve's file, of a run with checksums or without, what is said of it, how many looks are shown.
CURVES: dict[str, tuple[bytes | None, bool, str, int]] = {
    "missing": (None, True, MISSING, 0),
    "empty": (b"", True, ANOTHER, 0),
    "another": (LOOK, True, ANOTHER, 0),
    "old, missing": (None, False, MISSING, 0),
    "old, empty": (b"", False, "the curve is empty", 0),
    "old, torn": (LOOK + LOOK[:20], False, AFTER.format(1), 1),
    "old, no text": (LOOK + b"\xff", False, AFTER.format(0), 0),
    "old, a list": (LOOK + b"[1]", False, AFTER.format(1), 1),
    "old, no step": (LOOK + b"{}", False, AFTER.format(1), 1),
    "old, a word": (LOOK.replace(b"0.5", b'"x"'), False, AFTER.format(0), 0),
}


@pytest.mark.parametrize("damage", CURVES)
def test_a_curve_that_is_missing_or_damaged_is_said_once(folder: Path, damage: str) -> None:
    data, signed, reason, looks = CURVES[damage]
    path, record = folder / "curves" / f"{NAME}.ndjson", folder / "records" / f"{NAME}.json"
    if not signed:
        record.write_bytes(unsigned(record.read_bytes()))
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    shown = fine("show", NAME, folder)
    assert shown.err == f"{path}: {reason}\n"
    assert ("(1 evaluations)" in shown.out, "evaluations)" in shown.out) == (looks == 1, looks > 0)


def test_plot_says_so_once_and_draws_the_others(tmp_path: Path) -> None:
    plan = plan_from(GRID, "g")
    looks = tuple({"step": step, "valid": {"all": {"accuracy": 0.5, "loss": 1.0}}} for step in (1, 2))
    with Store(tmp_path) as store:
        store.adopt(plan)
        for run in plan.first_runs():
            store.put(run, done(run, curve=looks))
    one, other, *_ = sorted((tmp_path / "curves").iterdir())
    one.unlink()
    other.write_bytes(other.read_bytes().replace(b"0.5", b"0.9"))
    words = ("plot", tmp_path, "--kind", "curves", "--format", "svg")
    told = fine(*words)
    assert told.out == f"{tmp_path / 'plots' / 'curves.svg'}\n"
    assert sorted(told.err.splitlines()) == [f"{one}: {MISSING}", f"{other}: {ANOTHER}"]
    shutil.rmtree(tmp_path / "curves")
    none = mclab(*words)
    assert (none.code, none.err.count("\n")) == (2, 2)
    assert none.err.startswith(f"{tmp_path / 'curves'}: there is no such folder; all curves are left out\n")

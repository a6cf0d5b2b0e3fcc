"""The run folder: whole records, one writer, plain refusals."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mclab.config.ids import run_id
from mclab.config.options import checkpoint
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.run import RunConfig
from mclab.store import Records, Store, StoreError
from tests.stored import alter, altered, done, measured

DONE = Outcome(
    "done",
    steps=600,
    valid=measured(RunConfig(), 0.5, 1.5),
    test={**measured(RunConfig(), 0.0, 2.0), "pairs=4": Score(0.75, 2.0), ALL: Score(0.25, 2.0)},
    params=7,
    provenance={"device": "cpu", "torch": "2.13"},
    curve=({"step": 1, "loss": 3.0}, {"step": 2, "loss": float("nan")}, {"step": 3, "loss": float("inf")}),
)


def run_of(seed: int) -> RunConfig:
    return RunConfig(seed=seed)


def test_a_record_says_everything_and_is_valid_json(tmp_path: Path) -> None:
    run = RunConfig.model_validate(
        {"seed": 3, "train": {"lr": 0.003}, "model": {"mixer": {"aggregate": "none", "k": 5}}}
    )
    with Store(tmp_path / "out") as store:
        store.put(run, DONE)
    record = json.loads((tmp_path / "out/records" / f"{run_id(run)}.json").read_text())
    assert (record["run_id"], record["science"], record["seed"], record["status"]) == (run_id(run), 1, 3, "done")
    assert record["config"]["train.lr"] == 0.003
    assert record["config"]["model.mixer.k"] == 2  # inert, so canonical
    assert record["config"]["task.pairs"] == [4, 8, 16]
    assert record["test"]["pairs=4"] == {"accuracy": 0.75, "loss": 2.0, "token_accuracy": None}
    assert not {"curve", "weights"} & set(record)
    curve = (tmp_path / "out/curves" / f"{run_id(run)}.ndjson").read_text()
    assert "NaN" not in curve
    assert "Infinity" not in curve
    assert Records(tmp_path / "out").curve(run_id(run)) == [
        {"step": 1, "loss": 3.0},
        {"step": 2, "loss": None},
        {"step": 3, "loss": None},
    ]


WEIGHTED = dataclasses.replace(DONE, weights=b"weights")


def test_weights_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put(run_of(0), WEIGHTED)
        store.put(run_of(1), DONE)
        assert store.weights(run_id(run_of(0))).read_bytes() == b"weights"
        assert not store.weights(run_id(run_of(1))).exists()
        assert b"weights" not in (tmp_path / "records" / f"{run_id(run_of(0))}.json").read_bytes()


def checkpointed(folder: Path, seed: int, step: int = 8) -> Path:
    path = checkpoint(folder / "checkpoints", run_id(run_of(seed)), step)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"state")
    return path


def test_a_checkpoint_goes_when_its_run_is_over_and_stays_where_it_may_be_tried_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        done, failed, other = (checkpointed(tmp_path, seed) for seed in range(3))
        older = checkpointed(tmp_path, 0, 4)  # of a kill while the pack saved
        assert store.begun() == {run_id(run_of(0)): 4, run_id(run_of(1)): 8, run_id(run_of(2)): 8}
        store.put(run_of(0), DONE)
        assert not older.exists()
        store.put(run_of(1), Outcome("failed", error="x"))
        assert [path.exists() for path in (done, failed, other)] == [False, True, True]
        store.put(run_of(1), Outcome("diverged"))
        assert [path.exists() for path in (done, failed, other)] == [False, False, True]
    assert other.exists()
    with Store(tmp_path) as store:
        store.put(run_of(2), DONE)
    assert not other.parent.exists()


def test_what_killed_processes_left_of_checkpoints_is_tidied(tmp_path: Path) -> None:
    """A temporary file, checkpoints of a run that is stored; what is not ours stays."""
    with Store(tmp_path) as store:
        store.put(run_of(0), DONE)
    over, open_ = checkpointed(tmp_path, 0), checkpointed(tmp_path, 1)
    checkpointed(tmp_path, 0, 12)
    names = [".notes.tmp", ".x.0.tmp", "notes.safetensors", f"{run_id(run_of(0))}.safetensors"]
    for name in (f".x.safetensors.{'0f' * 8}.tmp", *names):
        over.with_name(name).write_bytes(b"")
    Store(tmp_path).close()
    assert sorted(path.name for path in over.parent.iterdir()) == sorted([open_.name, *names])


def test_provenance_of_any_kind_can_be_stored(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    odd = {"path": tmp_path, "f": np.float32(0.5), "i": np.int64(3), 5: {"deep": (1, float("-inf"))}}
    with Store(tmp_path) as store:
        store.put(run_of(0), done(run_of(0), provenance=odd))
        found = store.lookup(run_id(run_of(0)))
    assert found is not None
    assert found.provenance == {"path": str(tmp_path), "f": 0.5, "i": 3, "5": {"deep": [1, None]}}


def test_text_that_is_no_utf8_can_be_stored(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put(run_of(0), Outcome("failed", error="γ \udcff"))
        found = store.lookup(run_id(run_of(0)))
    assert found is not None
    assert found.error == "γ \udcff"
    assert "γ" in (tmp_path / "records" / f"{run_id(run_of(0))}.json").read_text()


def test_a_final_record_is_never_replaced_and_a_failed_one_is(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put(run_of(0), Outcome("failed", error="x"))
        store.put(run_of(0), DONE)
        with pytest.raises(AssertionError, match="stored already"):
            store.put(run_of(0), DONE)
        assert [record.status for record in store.scan()] == ["done"]


def test_a_deleted_record_is_missing_and_the_rest_unharmed(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for seed in range(3):
            store.put(run_of(seed), DONE)
        assert store.lookup(run_id(run_of(1)))
        (tmp_path / "records" / f"{run_id(run_of(1))}.json").unlink()
        assert store.lookup(run_id(run_of(1))) is None
        assert sorted(record.seed for record in store.scan()) == [0, 2]


def _cut(at: float) -> Callable[[bytes], bytes]:
    return lambda data: data[: int(len(data) * at)]


def _edited(*gone: str, **changes: object) -> Callable[[bytes], bytes]:
    return lambda data: altered(data, *gone, **changes)


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (_cut(0), "is empty"),
    **{f"cut at {at}": (_cut(at), "is no valid JSON (damaged or cut off)") for at in (0.01, 0.3, 0.5, 0.9, 0.99)},
    "zeros": (lambda data: bytes(len(data)), "is no valid JSON (damaged or cut off)"),
    "binary": (lambda data: b"\xff\xfe" + data, "is no valid JSON (damaged or cut off)"),
    "deep": (lambda data: b"[" * 100_000, "is no valid JSON (damaged or cut off)"),
    "a list": (lambda data: b"[1]", "is no JSON object"),
    "another id": (_edited(run_id="0" * 16), "belongs to the run '0000000000000000', not to"),
    "no status": (_edited("status"), "lacks these keys: status"),
    "odd status": (_edited(status="fine"), "unknown status 'fine'"),
    "no config": (_edited(config=[]), "has a config that is not valid"),
    "bad config": (_edited(config={"seed": "x"}), "has a config that is not valid"),
    "clashing config": (_edited(config={"train": 1, "train.lr": 2}), "has a config that is not valid"),
    "another config": (_edited(config={"seed": 9}), f"it is the config of run {run_id(RunConfig(seed=9))}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_said_and_stays_until_its_run_is_stored_again(tmp_path: Path, damage: str) -> None:
    spoil, reason = DAMAGES[damage]
    said: list[str] = []
    with Store(tmp_path, say=said.append) as store:
        store.put(run_of(0), DONE)
        store.put(run_of(1), DONE)
        path = tmp_path / "records" / f"{run_id(run_of(1))}.json"
        spoilt = spoil(path.read_bytes())
        path.write_bytes(spoilt)
        assert [record.seed for record in store.scan()] == [0]
        assert len(said) == 1
        assert said[0].startswith(f"{path}: ")
        assert reason in said[0]
        assert said[0].endswith("; the run counts as missing")
        assert "\n" not in said[0]
        assert path.read_bytes() == spoilt
        assert list(path.parent.glob("*.damaged*")) == []
        store.put(run_of(1), DONE)
        assert said[1:] == [f"{path}: the record is damaged; the damaged file is kept as {path.name}.damaged"]
        assert path.with_name(f"{path.name}.damaged").read_bytes() == spoilt
        assert len(store.scan()) == 2
        path.write_bytes(b"")
        assert store.lookup(run_id(run_of(1))) is None
        store.put(run_of(1), DONE)
        assert path.with_name(f"{path.name}.damaged2").read_bytes() == b""
        assert path.with_name(f"{path.name}.damaged").read_bytes() == spoilt


def test_a_reader_touches_nothing(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put(run_of(0), DONE)
        store.put(run_of(1), DONE)
        bad = tmp_path / "records" / f"{run_id(run_of(1))}.json"
        bad.write_bytes(b"{")
        (tmp_path / "records" / "notes.txt").write_text("mine")
        before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
        said: list[str] = []
        reader = Records(tmp_path, say=said.append)  # while the writer holds the lock
        assert [record.seed for record in reader.scan()] == [0]
        reader.scan()
        assert said == [f"{bad}: the record is no valid JSON (damaged or cut off); the run counts as missing"]
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
    with pytest.raises(StoreError, match="no such run folder"):
        Records(tmp_path / "typo")
    assert not (tmp_path / "typo").exists()


def test_other_science_is_not_mixed_in(tmp_path: Path) -> None:
    said: list[str] = []
    with Store(tmp_path, say=said.append) as store:
        store.put(run_of(0), DONE)
        path = tmp_path / "records" / f"{run_id(run_of(0))}.json"
        old = altered(path.read_bytes(), science=0, run_id="a" * 16, config={"seed": 0, "gone": 1})
        (tmp_path / "records" / f"{'a' * 16}.json").write_bytes(old)
        assert [record.run_id for record in store.scan()] == [run_id(run_of(0))]
        assert said == [f"{tmp_path}: 1 records are left out: their science version is not 1"]
        assert store.lookup("a" * 16)


def test_a_younger_field_reads_as_null(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put(run_of(0), DONE)
        path = tmp_path / "records" / f"{run_id(run_of(0))}.json"
        alter(path, "overlap")
        found = store.lookup(run_id(run_of(0)))
    assert found is not None
    assert found.overlap is None


def test_frame(tmp_path: Path) -> None:
    attention = RunConfig.model_validate({"seed": 1, "model": {"mixer": {"name": "attention"}}})
    with Store(tmp_path) as store:
        assert store.scan_frame().height == 0
        store.put(run_of(0), DONE)
        store.put(attention, Outcome("diverged", diverged_step=5))
        frame = store.scan_frame().sort("seed")
    assert frame["status"].to_list() == ["done", "diverged"]
    assert frame["test_accuracy"].to_list() == [0.25, None]
    assert frame["test_accuracy[pairs=4]"].to_list() == [0.75, None]
    assert frame["model.mixer.segment"].to_list() == [8, None]
    assert frame["diverged_step"].to_list() == [None, 5]
    assert frame["provenance.device"].to_list() == ["cpu", None]


# ---- whose folder ----

"""A run that is stopped and resumed ends as one that never stopped, bit for bit."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import mclab
from mclab.config.ids import run_id
from mclab.config.options import Keep, checkpoint
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.train import train_pack
from mclab.train.tensor_file import read, to_bytes
from tests.train.test_loop import run_config


class StoppedError(Exception):
    """What ends a training from within."""


def science_of(outcome: Outcome) -> Outcome:
    """Without clocks and provenance; the weights apart, since they do not count in a comparison."""
    return dataclasses.replace(outcome, tokens_per_s=None, wall_s=None, provenance={})


def trained(runs: Sequence[RunConfig], folder: Path | None) -> list[Outcome]:
    return train_pack(runs, device="cpu", keep=Keep(folder, weights=True))


def stopped(runs: Sequence[RunConfig], folder: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until before step `at` (steps + 1: until the test), and no further."""
    from mclab.train.loop import _Training

    step = _Training._step

    def stopping(self: _Training, batch: Any, number: int) -> Any:
        if number == at:
            raise StoppedError
        return step(self, batch, number)

    def ending(self: _Training, last_step: int) -> Any:
        raise StoppedError

    with monkeypatch.context() as patched:
        patched.setattr(_Training, "_step", stopping)
        patched.setattr(_Training, "_outcomes", ending)
        with pytest.raises(StoppedError):
            trained(runs, folder)


def assert_same(found: Sequence[Outcome], whole: Sequence[Outcome]) -> None:
    for one, other in zip(found, whole, strict=True):
        assert science_of(one) == science_of(other)
        assert one.weights == other.weights


PACKS = {
    "one": [run_config(checkpoint_every=7)],
    "at looks": [run_config(checkpoint_every=10)],
    "every step": [run_config(checkpoint_every=1)],
    "at the end alone": [run_config(checkpoint_every=20)],
    "recycled": [run_config(checkpoint_every=7, examples=50)],
    "bf16": [run_config(checkpoint_every=7, precision="bf16")],
    "fp64 pack": [run_config(seed, checkpoint_every=7, precision="fp64") for seed in range(3)],
    **{
        route: [run_config(mixer={"aggregate": "ssc", "segment": 2, "route": route}, checkpoint_every=7)]
        for route in ("explore", "annealed")
    },
    "a stopped and a lost one among them": [
        run_config(checkpoint_every=7),
        run_config(1, checkpoint_every=7, stop_at=0.01),
        run_config(2, checkpoint_every=7, lr=1e30),
    ],
}


#: The others ask what these ask.
QUICK = ("one", "every step", "recycled", "bf16", "annealed", "a stopped and a lost one among them")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.product] * (name not in QUICK)) for name in PACKS]
)
def test_what_is_stopped_at_any_step_and_resumed_ends_bit_equal(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first checkpoint, right after one, between two, before the last step, after it (21 is the test)."""
    runs = PACKS[name]
    whole = trained(runs, None)
    every = runs[0].train.checkpoint_every or 0
    for at in sorted({1, every, every + 1, min(every + 3, 21), 20, 21}):
        folder = tmp_path / str(at)
        stopped(runs, folder, at, monkeypatch)
        found = trained(runs, folder)
        assert_same(found, whole)
        last = (at - 1) // every * every
        assert {outcome.provenance.get("resumed_at", 0) for outcome in found} == {last}
        assert all("remarks" not in outcome.provenance for outcome in found)


def test_two_stops_and_times_that_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_config(checkpoint_every=3)]
    for at in (8, 14):
        stopped(runs, tmp_path, at, monkeypatch)
    _, facts = read(checkpoint(tmp_path, run_id(runs[0]), 12))
    assert facts["step"] == 12
    assert len(list(tmp_path.iterdir())) == 1
    (found,) = trained(runs, tmp_path)
    assert_same([found], trained(runs, None))
    assert found.wall_s > facts["wall_s"] > facts["training_s"] > 0


def test_nothing_is_written_unless_asked(tmp_path: Path) -> None:
    train_pack([run_config(checkpoint_every=5)], device="cpu")
    (outcome,) = train_pack([run_config()], device="cpu", keep=Keep(tmp_path / "here"))
    assert outcome.weights is None
    assert list(tmp_path.iterdir()) == []


# ---- what is not resumed ----


def spoilt(path: Path, how: str) -> None:
    tensors, facts = read(path)
    data = path.read_bytes()
    changes: dict[str, bytes] = {
        "empty": b"",
        "torn": data[: len(data) // 2],
        "torn at the end": data[:-1],
        "no safetensors": b"x" * len(data),
        "another run's": to_bytes(tensors, {**facts, "run_id": "0" * 16}),
        "of another science": to_bytes(tensors, {**facts, "science": 0}),
        "of another mclab": to_bytes(tensors, {**facts, "mclab": "0.0.1"}),
        "of another step": to_bytes(tensors, {**facts, "step": 14}),
        "of another torch": to_bytes(tensors, {**facts, "torch": "1.0"}),
        "of another device": to_bytes(tensors, {**facts, "device": "cuda"}),
        "no curve": to_bytes(tensors, {key: value for key, value in facts.items() if key != "log"}),
        "no facts": to_bytes(tensors, {}),
        "another shape": to_bytes({**tensors, "mean": tensors["mean"][1:]}, facts),
        "no moments": to_bytes({"values": tensors["values"], "losses": tensors["losses"]}, facts),
        "another value": data[:-1] + bytes([data[-1] ^ 1]),
        "another step, unsigned": data.replace(b'step\\": 7', b'step\\": 6', 1),
        "no checksum": data.replace(b'sha256\\": \\"', b'sha257\\": \\"', 1),
    }
    path.write_bytes(changes[how])


CHANGED = "does not match its checksum (sha256): something in it has changed since it was written"
REASONS = {
    **dict.fromkeys(("another value", "another step, unsigned", "no checksum"), CHANGED),
    **dict.fromkeys(
        ("empty", "torn", "torn at the end", "no safetensors"), "it is incomplete, or not a safetensors file"
    ),
    "another run's": "it was written with run_id 0000000000000000, but this run has ",
    "of another science": "it was written with science 0, but this run has ",
    "of another mclab": f"it was written with mclab 0.0.1, but this run has {mclab.__version__}",
    "of another step": "it was written with step 14, but this run has 7",
    "of another torch": "it was written with torch 1.0, but this run has ",
    "of another device": "it was written with device cuda, but this run has cpu",
    **dict.fromkeys(("no curve",), "it is not a checkpoint of mclab"),
    "no facts": "it was written with run_id None, but this run has ",
    **dict.fromkeys(("another shape", "no moments"), "its tensor mean does not fit this model"),
}


@pytest.mark.parametrize("how", REASONS)
def test_what_does_not_fit_is_told_and_the_run_starts_over(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run_config(checkpoint_every=7)]
    stopped(runs, tmp_path, 9, monkeypatch)
    path = checkpoint(tmp_path, run_id(runs[0]), 7)
    spoilt(path, how)
    found = trained(runs, tmp_path)
    assert_same(found, trained(runs, None))
    (remark,) = found[0].provenance["remarks"]
    assert remark.startswith(f"training started over, because {path} cannot be used: {REASONS[how]}")
    assert "resumed_at" not in found[0].provenance
    (good,) = tmp_path.iterdir()  # stands in its place
    assert read(good)[1]["step"] == 14


def test_a_foreign_safetensors_file_is_not_taken(tmp_path: Path) -> None:
    runs = [run_config()]
    path = checkpoint(tmp_path, run_id(runs[0]), 3)
    save_file({"values": torch.zeros(3)}, path)
    (found,) = trained(runs, tmp_path)
    assert found.provenance["remarks"] == [
        f"training started over, because {path} cannot be used: it was not written by mclab"
    ]
    assert load_file(path)["values"].shape == (3,)


def test_a_pack_resumes_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_config(seed, checkpoint_every=4) for seed in range(2)]
    whole = trained(runs, None)
    stopped(runs, tmp_path, 7, monkeypatch)
    early = checkpoint(tmp_path, run_id(runs[0]), 4).read_bytes()
    stopped(runs, tmp_path, 14, monkeypatch)
    checkpoint(tmp_path, run_id(runs[0]), 12).unlink()
    checkpoint(tmp_path, run_id(runs[0]), 4).write_bytes(early)
    found = trained(runs, tmp_path)
    assert_same(found, whole)
    told = "training started over, because the checkpoints of the runs that train together are of different steps"
    assert [outcome.provenance["remarks"] for outcome in found] == [[told]] * 2
    checkpoint(tmp_path, run_id(runs[0]), 20).unlink()
    found = trained(runs, tmp_path)
    assert_same(found, whole)
    assert found[0].provenance["remarks"] == [
        "training started over, because 1 of the 2 runs that train together have no checkpoint"
    ]


def test_a_kill_in_the_middle_of_a_write_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, real, calls = [run_config(checkpoint_every=4)], os.replace, 0

    def dying(*paths: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise StoppedError
        real(*paths)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying)
        with pytest.raises(StoppedError):
            trained(runs, tmp_path)
    assert read(checkpoint(tmp_path, run_id(runs[0]), 8))[1]["step"] == 8
    assert_same(trained(runs, tmp_path), trained(runs, None))


@pytest.mark.parametrize(("call", "name", "step"), [(5, "replace", 4), (2, "unlink", 8)])
def test_a_pack_killed_while_it_saves_goes_on_from_a_step_that_all_of_it_has(
    call: int, name: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the second of three files of the second save (the fifth of all); at the second of those that it removes."""
    runs = [run_config(seed, checkpoint_every=4) for seed in range(3)]
    holder, calls = {"replace": os, "unlink": Path}[name], 0
    real = getattr(holder, name)

    def dying(*paths: Any, **options: Any) -> None:
        nonlocal calls
        calls += ".tmp" not in str(paths[0]) or name == "replace"
        if calls == call:
            raise StoppedError
        real(*paths, **options)

    with monkeypatch.context() as patched:
        patched.setattr(holder, name, dying)
        with pytest.raises(StoppedError):
            trained(runs, tmp_path)
    assert len(list(tmp_path.iterdir())) == (4 if name == "replace" else 5)
    found = trained(runs, tmp_path)
    assert_same(found, trained(runs, None))
    assert [outcome.provenance["resumed_at"] for outcome in found] == [step] * 3
    assert sorted(tmp_path.iterdir()) == sorted(checkpoint(tmp_path, run_id(run), 20) for run in runs)


def test_a_disk_that_is_full_costs_the_checkpoint_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run_config(checkpoint_every=4)]

    def full(*paths: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        found = trained(runs, tmp_path)
    assert_same(found, trained(runs, None))
    assert found[0].provenance["remarks"] == [f"no checkpoint was written to {tmp_path}: No space left on device"]
    assert list(tmp_path.iterdir()) == []
    found = trained(runs, tmp_path / "not" / "there")
    assert found[0].provenance["remarks"] == [
        f"no checkpoint was written to {tmp_path}/not/there: No such file or directory"
    ]

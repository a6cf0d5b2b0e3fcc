"""Spoilt files and words: every command ends soon, by code 0, 2 or 3, and touches nothing but what it may.

A failure names its kind, number and seed. `pytest tests/attack/test_files.py -k KIND --seed SEED --input NUMBER`
repeats it, and the spoilt file stands where the failure says.
"""

import sys
from pathlib import Path
from random import Random

import pytest

from tests.attack.bases import Bases
from tests.attack.kinds import KINDS
from tests.attack.place import Place


@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_input_is_refused_or_read_and_harms_nothing(
    kind: str, inputs: range, seed: int, bases: Bases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack, base = KINDS[kind]
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    faults = []
    for number in inputs:
        place, rng = Place(tmp_path / "place"), Random(f"{seed}/{kind}/{number}")
        with place.set_up(getattr(bases, base) if base else None):
            spoilt = attack(place, bases, rng)
        if place.faults:
            (kept := tmp_path / f"{kind}-{number}").mkdir()
            for name, data in spoilt.items():
                (kept / name).write_bytes(data)
            faults += [f"{kind} {number} of seed {seed}, in {kept}: {fault}" for fault in place.faults]
    assert not faults, "\n".join([f"{len(faults)} did not hold:", *faults])

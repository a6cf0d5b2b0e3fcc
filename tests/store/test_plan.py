"""The plan of a run folder: whose it is, and what becomes of a damaged one."""

from pathlib import Path

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.store import Records, Store, StoreError

GRID = {"grid": {"model.mixer.gate": ["context", "input"]}, "seeds": "0..1"}


def test_a_folder_belongs_to_one_grid(tmp_path: Path) -> None:
    plan = plan_from(GRID, "g")
    with Store(tmp_path) as store:
        assert store.plan() is None
        store.adopt(plan, b"grid: # as given\r\n")
        assert (tmp_path / "grid.yaml").read_bytes() == b"grid: # as given\r\n"
        assert store.plan() == plan
        before = (tmp_path / "plan.json").read_bytes()
        store.adopt(plan)
        assert (tmp_path / "plan.json").read_bytes() == before
        other = plan_from({**GRID, "grid": {"model.mixer.gate": ["context", "none"], "model.dim": [16, 32]}}, "g")
        with pytest.raises(
            StoreError, match=r"holds another grid, compared with which this one is \+3 −1 cells; give --extend"
        ):
            store.adopt(other, b"other")
        assert (tmp_path / "plan.json").read_bytes() == before
        assert (tmp_path / "grid.yaml").read_bytes().startswith(b"grid")
        more = plan_from({**GRID, "seeds": "0..4"}, "g")
        store.adopt(more)
        assert store.plan() == more
        store.adopt(plan)
        assert store.plan() == plan
        steps = plan_from(GRID, "g", ["train.steps=40"])
        with pytest.raises(StoreError, match=r"this one is \+2 −2 cells \(train\.steps 600 → 40\); give --extend"):
            store.adopt(steps)
        store.adopt(other, b"other", extend=True)
        assert Records(tmp_path).plan() == other


def test_a_folder_of_a_search_takes_no_grid(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        (tmp_path / "space.yaml").write_text("space: {}")
        with pytest.raises(
            StoreError, match="this folder holds a search of mclab sweep; give another folder with --out"
        ):
            store.adopt(plan_from(GRID, "g"), extend=True)
    assert not (tmp_path / "plan.json").exists()


@pytest.mark.parametrize("text", [b"", b"{", b"{}", b"[]", b"null", b"\xff", b'{"cells": [1]}'])
def test_a_damaged_plan_is_kept_aside(tmp_path: Path, text: bytes) -> None:
    said: list[str] = []
    (tmp_path / "plan.json").write_bytes(text)
    with pytest.raises(ConfigError, match=r"plan\.json"):
        Records(tmp_path).plan()
    with Store(tmp_path, say=said.append) as store:
        store.adopt(plan_from(GRID, "g"))
        assert store.plan() == plan_from(GRID, "g")
    assert (tmp_path / "plan.json.damaged").read_bytes() == text
    assert len(said) == 1
    assert said[0].endswith("; the damaged file is kept as plan.json.damaged")

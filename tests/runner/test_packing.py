"""Which runs train together as one pack, and in which order."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from mclab.config.ids import run_id, shape_key
from mclab.config.options import RunOptions, checkpoint
from mclab.config.run import RunConfig
from mclab.plan.grid import plan_from
from mclab.runner.execute import ALONE
from mclab.runner.memory import memory
from mclab.runner.packing import cost, free, packs_of
from mclab.store import Store
from tests.runner.test_execute import Trainer, records, run


def test_packs_mix_cells_of_one_shape_and_no_others(tmp_path: Path) -> None:
    grid = {"grid": {"train.lr": [0.001, 0.01], "model.dim": [16, 32]}, "seeds": "0..2"}
    train = Trainer()
    run(plan_from(grid, "g"), tmp_path, train, replace(ALONE, pack=4))
    assert [len(pack) for pack in train.packs] == [4, 2, 4, 2]
    assert all(len({shape_key(each) for each in pack}) == 1 for pack in train.packs)
    assert len({each.train.lr for each in train.packs[0]}) == 2
    assert len(records(tmp_path)) == 12


def test_automatic_packs() -> None:
    runs = [RunConfig(seed=seed) for seed in range(40)]
    sizes = partial(packs_of, runs, "auto")
    assert {len(pack) for pack in sizes(device="cpu", workers=1)} == {1}
    assert [len(pack) for pack in sizes(device="cuda", workers=1)] == [16, 16, 8]
    assert [len(pack) for pack in sizes(device="cuda", workers=8)] == [5] * 8
    each = memory(runs[0]).total
    assert [len(pack) for pack in sizes(device="cuda", workers=1, room=50 * each)] == [25, 15]
    assert [len(pack) for pack in sizes(device="cuda", workers=1, room=500 * each)] == [40]
    assert {len(pack) for pack in sizes(device="cuda", workers=1, room=each)} == {1}
    assert {len(pack) for pack in sizes(device="cpu", workers=1, room=500 * each)} == {1}


def test_workers_share_what_is_free_on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    left = {0: 8000, 1: 3000}
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda card: (left[card], 9000))
    assert free(RunOptions("cuda"), 1) == 8000
    assert free(RunOptions("cuda"), 2) == 3000
    assert free(RunOptions("cuda"), 3) == 3000
    assert free(RunOptions("cuda"), 8) == 750
    assert free(RunOptions("cuda:1"), 2) == 1500
    assert free(RunOptions("cpu"), 1) is None
    assert free(RunOptions("cuda", scheduler="tcp://head:8786"), 1) is None


def test_runs_whose_checkpoints_reach_equally_far_train_together(tmp_path: Path) -> None:
    """Two of six at step 8, one at 4: no pack mixes them, and no pack is smaller for it than it must be."""
    plan = plan_from({"grid": {"train.lr": [0.001, 0.01]}, "seeds": "0..2"}, "g")
    runs, far = list(plan.first_runs()), {1: 8, 4: 8, 2: 4}
    with Store(tmp_path) as store:
        for number, step in far.items():
            path = checkpoint(store.checkpoints, run_id(runs[number]), step)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"")
    train = Trainer()
    run(plan, tmp_path, train, replace(ALONE, pack=4))
    together = sorted(sorted(runs.index(each) for each in pack) for pack in train.packs)
    assert together == [[0, 3, 5], [1, 4], [2]]
    found = packs_of(runs, "auto", device="cuda", workers=2, step=lambda each: far.get(runs.index(each)))
    assert sorted(map(len, found)) == [1, 2, 3]


def test_the_dearest_pack_starts_first() -> None:
    small, large = RunConfig(), RunConfig.model_validate({"model": {"dim": 64}})
    longer = RunConfig.model_validate({"train": {"steps": 6000}})
    assert cost((small,)) < cost((large,))
    assert cost((small,)) < cost((longer,))
    assert cost((small, small)) == 2 * cost((small,))

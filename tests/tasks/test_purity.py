"""The same bits whatever stands around them, the same in every task: a new one is tested by being registered."""

import hashlib
import subprocess
import sys
from itertools import combinations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mclab.config.task import TASKS as CONFIGS
from mclab.config.task import MqarTask
from mclab.tasks import SPLITS, TASKS, Batch, Role

SMALL = MqarTask(vocab=6, length=8, pairs=(1, 2))
CASES = {
    "mqar": MqarTask(),
    "mqar random": MqarTask(filler="random", spread="uniform"),
    "mqar wide": MqarTask(vocab=1000, pairs=(3, 16), filler="random"),
    "mqar small": SMALL,
}
GOLDEN = {
    "mqar": "717fb48ef1d63a2ce48e6dcb756de806de3b3627157bef5d513f7cc1f17d2bd8",
    "mqar random": "0640397fffdcd34401fcaaf85c184928b1c344814195627fee239c0ee46f87b5",
    "mqar wide": "72d21e22cda8dd1cad541c3d1ddb262e51f371e67a94b510aef983efe1240d1f",
    "mqar small": "209bf1588f644087b098e7ddb11a0f2365d1239cfd933cc4aec9e6f3df106bcc",
}
each_case = pytest.mark.parametrize("name", CASES)


def make(name: str, seeds=(0,), split="train", start=0, count=8, device="cpu") -> Batch:
    return TASKS[CASES[name].name].batch(CASES[name], seeds, split, start, count, device)


def digest(name: str) -> str:
    """Of 40 samples of two seeds in each split, made in parts of 7."""
    parts = (make(name, (3, 11), split, start, min(7, 40 - start)) for split in SPLITS for start in range(0, 40, 7))
    joined = hashlib.sha256()
    for tensors in zip(*parts, strict=True):
        joined.update(torch.cat([t.flatten(1) for t in tensors], 1).numpy().tobytes())
    return joined.hexdigest()


def equal(a: Batch, b: Batch) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_every_task_with_a_config_has_a_maker():
    assert TASKS.keys() == CONFIGS.keys()
    assert {CASES[name].name for name in CASES} == TASKS.keys()


@each_case
def test_the_data_has_not_changed(name):
    """If this fails on purpose, raise the `science` version: stored results were made with other data."""
    assert digest(name) == GOLDEN[name]


def test_another_process_with_another_random_state_makes_the_same():
    code = (
        "import sys, random, numpy, torch; sys.path.insert(0, '.');"
        "torch.manual_seed(99); random.seed(99); numpy.random.seed(99); torch.set_num_threads(2);"
        "torch.set_default_dtype(torch.float64);"
        "from tests.tasks.test_purity import CASES, digest; print(*[digest(name) for name in CASES])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [digest(name) for name in CASES]


@each_case
def test_random_states_are_neither_read_nor_written(name):
    torch.manual_seed(1)
    before, first = torch.get_rng_state(), make(name)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert equal(make(name), first)


@each_case
@pytest.mark.parametrize("split", SPLITS)
def test_a_sample_does_not_depend_on_its_batch(name, split):
    whole = make(name, split=split, count=50)
    for start, count in ((0, 1), (49, 1), (13, 20)):
        part = make(name, split=split, start=start, count=count)
        assert equal(part, Batch(*(t[:, start : start + count] for t in whole)))


@each_case
def test_a_seed_does_not_depend_on_the_seeds_beside_it(name):
    stacked = make(name, seeds=(5, 0, 10**12))
    for row, seed in enumerate((5, 0, 10**12)):
        assert equal(make(name, seeds=(seed,)), Batch(*(t[row : row + 1] for t in stacked)))


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name] is not SMALL])
def test_seeds_splits_and_samples_differ(name):
    parts = [make(name, seeds=(0, 1), split=split, count=100).tokens.flatten(0, 1) for split in SPLITS]
    assert len(torch.cat(parts).unique(dim=0)) == 600


@each_case
def test_only_integers_are_computed_with(name):
    class IntegersOnly(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for leaf in torch.utils._pytree.tree_leaves((args, out)):
                if isinstance(leaf, torch.Tensor):
                    assert not leaf.is_floating_point(), func
                    assert not leaf.is_complex(), func
                assert not isinstance(leaf, float), func
            return out

    with IntegersOnly():
        batch = make(name)
        TASKS[CASES[name].name].roles(CASES[name], batch)


@pytest.mark.parametrize("name", ["mqar", "mqar random", "mqar wide"])
def test_large_spaces_never_wait_for_the_device(name):
    """A meta tensor holds no data: whatever would read a value back from a device fails on it."""
    batch = make(name, seeds=(0, 1), device="meta")
    assert [t.shape for t in batch] == [t.shape for t in make(name, seeds=(0, 1))]
    with pytest.raises(NotImplementedError):
        make("mqar small", device="meta")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@each_case
@pytest.mark.parametrize("split", SPLITS)
def test_a_gpu_makes_the_same_bits(name, split):
    far = make(name, seeds=(0, 7), split=split, count=300, device="cuda")
    assert equal(Batch(*(t.cpu() for t in far)), make(name, seeds=(0, 7), split=split, count=300))


@each_case
def test_every_scored_position_is_asked_and_roles_are_known(name):
    batch = make(name, count=50)
    roles = TASKS[CASES[name].name].roles(CASES[name], batch)
    assert set(roles.unique().tolist()) <= set(Role)
    scored = batch.answers != -100
    assert (roles.gather(-1, batch.positions)[scored] == Role.QUERY).all()
    assert (batch.slices < len(CASES[name].slices)).all()


def test_splits_share_no_sequence_where_all_of_them_come_up():
    """V=6, T=8: 18 sequences of one pair and 24 of two, each drawn hundreds of times by many seeds."""
    held = {}
    for split in SPLITS:
        batch = TASKS["mqar"].batch(SMALL, range(30), split, 0, 100, "cpu")
        held[split] = {tuple(tokens) for tokens in batch.tokens.flatten(0, 1).tolist()}
        assert set(batch.slices.flatten().tolist()) == {0, 1}
    for one, other in combinations(SPLITS, 2):
        assert not held[one] & held[other]
    assert len(set.union(*held.values())) == 18 + 24  # and none is lost


@pytest.mark.parametrize("config", [MqarTask(), MqarTask(pairs=(2,)), MqarTask(vocab=16, length=16, pairs=(2, 4))])
def test_no_seeds_test_set_meets_any_seeds_training(config):
    seen = {split: TASKS["mqar"].batch(config, range(1000), split, 0, 8, "cpu").fingerprints for split in SPLITS}
    for one, other in combinations(SPLITS, 2):
        assert not torch.isin(seen[one], seen[other]).any()


@pytest.mark.parametrize("split", ["dev", "Train", ""])
def test_an_unknown_split_is_refused(split):
    with pytest.raises(ValueError, match="is none of train, valid, test"):
        make("mqar", split=split)

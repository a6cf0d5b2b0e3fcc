"""The same bits whatever stands around them, the same in every task: a new one is tested by being registered."""

import hashlib
import subprocess
import sys
from itertools import combinations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mclab.config.task import ArTask, MqarTask, NiahTask
from mclab.tasks import SPLITS, TASKS, Batch
from mclab.tasks.splits import ENOUGH
from tests.tasks.cases import CASES, make

GOLDEN = {
    "mqar": "717fb48ef1d63a2ce48e6dcb756de806de3b3627157bef5d513f7cc1f17d2bd8",
    "ar": "d39e0e27cf5f5d2eeb7811a7b7ffd056f540e59e21309275d1a242d85f788678",
    "niah": "964a5609ece351487def040da7f4672f786df85c1402d1a6a98de5cc62bd80eb",
    "mqar random": "0640397fffdcd34401fcaaf85c184928b1c344814195627fee239c0ee46f87b5",
    "mqar wide": "72d21e22cda8dd1cad541c3d1ddb262e51f371e67a94b510aef983efe1240d1f",
    "mqar small": "209bf1588f644087b098e7ddb11a0f2365d1239cfd933cc4aec9e6f3df106bcc",
    "ar answer": "3bae97e8a75f0d97e9f32a9d851ebd701965b4dd90f41d67b8d083c304a8ad07",
    "ar small": "5fdeeb22dd4deabde7cdace06d9dfe29f183b2f3e98b328f839451e1d5484659",
    "niah1": "d5b14721d2be36998e13db41339144a52ea734f771d8522edb82392595981631",
    "niah2": "ff9abe31cd96d9c48bd6c09d3fc4142275eefbad2b2c4e9a74f7d754be17f072",
    "niah3": "59f280a7a8a0fdc89eb89bc40a681afb458b395f1d142f1687d907e4b18d9aa9",
    "mk1": "ee0b23ede6297c973e8acbeba0ac92cc7dca610610c11e0e8b367bd747b3b4cc",
    "mk2": "647c206adcb483454a5d8b1ef3e3c577101d0f890ccf7bc5d938fd2151e19530",
    "mk3": "7938512abae4f5ed0fa12f6bd11011c79efc4af59a4b701cce1b6eb0e073c154",
    "mv": "90479e366275fd155cd88873b435822453250eef3ebe321c43bce47926c197fd",
    "mq": "7ebb82522e7e194a917f806a23da0de20ed906368b34533a6c9a97d7fdd6efcf",
    "niah least": "af5037ec425e3725cdbd34e08fc7e7b080a26c6b432c591b3bc65e614a10f174",
    "mk3 least": "6e8bc5ff37749e90b98e2dd688048ae78078384c9ee946dcc68aaea3f74200aa",
    "mq least": "1895b720fdcb0da05263203b20d686604fda5c13595ca82ee89db0de8e1895e4",
    "niah depth": "94e7d7883c28f23b8e242b0a8a85d12e87df648c4504cfe91aa41a0ea68afda2",
    "niah all": "75a41f4de11fabb92888a408a5838e4d8b489205c21646c6def5ff58a2832dfb",
    "facts": "899509c725a15fb792aa3022cb401041065a6620d6eb61d0906e16bf9f5c7b45",
    "module": "6db7fa7df5c9e2844d32b4f466308ed1c34de0595adafea59d2dce64e5540260",
    "text file": "972f5af252ce56ee8210967b1495a5e5b3aa67631c5d63625d713150cf0f799a",
    "facts few": "b3873a011b4c4f9be2e634ba9357568ce9219f4fb3bc18cb16fb7fed2a00fff7",
    "niah full": "eb6186ef6a084b7a1c2b1eb468fd4db625801e91f660f1f955b81f609547e818",
}
each_case = pytest.mark.parametrize("name", CASES)


def digest(name: str) -> str:
    """Of 40 samples of two seeds in each split, made in parts of 7."""
    parts = (make(name, (3, 11), split, start, min(7, 40 - start)) for split in SPLITS for start in range(0, 40, 7))
    joined = hashlib.sha256()
    for tensors in zip(*parts, strict=True):
        joined.update(torch.cat([t.flatten(1) for t in tensors], 1).numpy().tobytes())
    return joined.hexdigest()


def equal(a: Batch, b: Batch) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", [name for name in CASES if name != "text"])  # its corpus is this Python's own
def test_the_data_has_not_changed(name):
    """If this fails on purpose, raise the task's version in `config/versions.py`: stored results were made with other
    data. (The fixture of losses then has entries for both.)"""
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


@pytest.mark.parametrize("name", [n for n, task in CASES.items() if task.space() > 10**6 and task.name != "text"])
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


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].space() >= ENOUGH and name != "module"])
def test_large_spaces_never_wait_for_the_device(name):
    """A meta tensor holds no data: whatever would read a value back from a device fails on it. (A task of
    the user's own has a space that nobody knows, and asks.)"""
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


@pytest.mark.parametrize("name", ["mqar small", "ar small"])
def test_splits_share_no_sequence_where_all_of_them_come_up(name):
    """Each is drawn hundreds of times by many seeds; none is lost, and they are as many as the config counts."""
    config = CASES[name]
    counts = [config.only(part).space() for part in config.slices]
    assert counts == {"mqar small": [18, 24], "ar small": [30]}[name]
    held = {}
    for split in SPLITS:
        batch = TASKS[config.name].batch(config, range(30), split, 0, 100, "cpu")
        held[split] = {
            tuple(tokens) for tokens in torch.cat((batch.tokens, batch.answers[..., -1:]), -1).flatten(0, 1).tolist()
        }
        assert set(batch.slices.flatten().tolist()) == set(range(len(counts)))
    for one, other in combinations(SPLITS, 2):
        assert not held[one] & held[other]
    assert len(set.union(*held.values())) == sum(counts)


@pytest.mark.parametrize(
    "config",
    [
        MqarTask(),
        MqarTask(pairs=(2,)),
        MqarTask(vocab=16, length=16, pairs=(2, 4)),
        ArTask(),
        ArTask(length=12),
        NiahTask(length=18),
        NiahTask(preset="mk1", length=64),
    ],
)
def test_no_seeds_test_set_meets_any_seeds_training(config):
    task = TASKS[config.name]
    seen = {split: task.batch(config, range(1000), split, 0, 8, "cpu").fingerprints for split in SPLITS}
    for one, other in combinations(SPLITS, 2):
        assert not torch.isin(seen[one], seen[other]).any()


@pytest.mark.parametrize("split", ["dev", "Train", ""])
@pytest.mark.parametrize("name", TASKS)
def test_an_unknown_split_is_refused(name, split):
    with pytest.raises(ValueError, match="is none of train, valid, test"):
        make(name, split=split)

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
    "ar": "a3811055d04d85d02f89acc33d0adcc7565cd85d011fd29a3a2af182956c828e",
    "niah": "f18412b6a4cf4be48f692b2f759d196c262fdc775b1458ec04a40ce41cd4acef",
    "mqar random": "0640397fffdcd34401fcaaf85c184928b1c344814195627fee239c0ee46f87b5",
    "mqar wide": "72d21e22cda8dd1cad541c3d1ddb262e51f371e67a94b510aef983efe1240d1f",
    "mqar small": "209bf1588f644087b098e7ddb11a0f2365d1239cfd933cc4aec9e6f3df106bcc",
    "ar answer": "bbb3432d0ca891f13b8a6b16b81ec1cca0fed1f5b9ce6c7611eb4b6028e026aa",
    "ar small": "6cbba313617bd58895d2a717fc488da6962e7c460229cc01befcd72518abfda8",
    "niah1": "5b6680047f73fe0a4586332feef14416ed2b3abe5a7b2987a810876c79a1b6d4",
    "niah2": "1779a00532218cdb9335b19c3c82d40555af33128427d525a7d8e975c2edcf7f",
    "niah3": "48a6da597a8c4f8bab350cdf9724926e7f3791710ab2ac4f6bc26da00e398f8f",
    "mk1": "6e9b4a32a8cf109a5d95d68a5d1e6f3693f7a0f24c4c677fc82e75dded87e193",
    "mk2": "8b74bf6b3229461966f113de4972b1d2fd43659cff9d6dbcff875f513feb08d7",
    "mk3": "0c375f365de88c600d19557f87e3b189b8ecc8a97601a1447edf4b4af283a751",
    "mv": "12f4fa592f8982ef7da095a9b89b9ce0ff779148f44a4229de37f021b402e00b",
    "mq": "8ef14c3060e0732f2869c5d81f7bcdf1100a56589579d0ee7bcc03403c395b8e",
    "niah least": "0fbd2d4f11a5d1f8d253b1aa21a4f5014e789e4123642bcac111dbbb26c0cc3a",
    "mk3 least": "cfcf596521ca43b54f4971ccb7baa11eef226544a0978adca4bae37c091777a4",
    "mq least": "144a39f310b9898a9e2dd0b1f8b0996c5aedef892c600d89e3feba080b137019",
    "niah depth": "ea9e7773162617388423b79aa8bd4099c21268d06067c755d3b134a7904ab2d1",
    "niah all": "0b1689ccdf95a49da61c7cae64c7178aa2eec169339f2e15301288ea5907387b",
    "niah full": "74a0bc64c042e742e79e5062fbef007774748ba6091481596edfd9e69dc9fd82",
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


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].space() > 10**6])
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


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].space() >= ENOUGH])
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


@pytest.mark.parametrize("name", ["mqar small", "ar small"])
def test_splits_share_no_sequence_where_all_of_them_come_up(name):
    """Each is drawn hundreds of times by many seeds; none is lost, and they are as many as the config counts."""
    config = CASES[name]
    counts = [config.only(part).space() for part in config.slices]
    assert counts == {"mqar small": [18, 24], "ar small": [42]}[name]
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

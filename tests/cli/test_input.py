"""Bad input of every sort: one line that says what, where and the nearest right thing; nothing is written."""

from pathlib import Path

import pytest

from mclab.config.strict import ConfigError
from mclab.store import Store
from tests.commands import mclab, one_line, snapshot

BAD_GRIDS = {
    "missing.yaml": (None, "missing.yaml: cannot be read: no such file"),
    "binary.yaml": (b"\x89PNG\r\n\x1a\n\xff\x00", "binary.yaml: is not UTF-8 text (byte 0)"),
    "empty.yaml": (b"", "empty.yaml: the file is empty; the keys of a grid are question, base, grid"),
    "list.yaml": (b"- a\n", "list.yaml: the file must be a mapping"),
    "torn.yaml": (b"grid: {a: [1,\n", "torn.yaml:2: this is not valid YAML"),
    "twice.yaml": (
        b"grid: {train.lr: [1e-3]}\nseeds: 0..1\ngrid: {}\n",
        "grid: this key is given twice, on lines 1 and 3",
    ),
    "nothing.yaml": (
        b"grid: {model.mixer.gate: []}\n",
        "nothing.yaml:1: grid: model.mixer.gate: must have at least one",
    ),
    "typo.yaml": (b"grid: {model.mixer.seqment: [4, 8]}\n", "did you mean model.mixer.segment?"),
    "base.yaml": (b"base: {train: {stepz: 3}}\n", "did you mean train.steps?"),
    "rule.yaml": (b"base: {task: {pairs: 64}}\n", "take length 256 or at most 16 pairs"),
    "vocab.yaml": (b"base: {task: {vocab: 16, length: 64, pairs: 16}}\n", "take vocab 34 or at most 7 pairs"),
}


@pytest.mark.parametrize("name", BAD_GRIDS)
def test_a_grid_that_is_none(here: Path, name: str) -> None:
    data, message = BAD_GRIDS[name]
    if data is not None:
        (here / name).write_bytes(data)
    before = snapshot(here)
    one_line(mclab("ablate", "--grid", name), message)
    assert snapshot(here) == before


BAD_WORDS = {
    "no folder as grid": ("--grid .", ".: cannot be read: is a directory"),
    "no grid": ("", "mclab ablate: give a grid, e.g. mclab ablate my.yaml (see mclab ablate --help)"),
    "grid options, two of them": (
        "--grid tiny.yaml --grid other.yaml",
        "two grids are given, --grid tiny.yaml and --grid other.yaml; give one of them",
    ),
    "grid as both": ("tiny.yaml --grid other.yaml", "two grids are given, tiny.yaml and --grid other.yaml"),
    "grids, two of them": (
        "tiny.yaml other.yaml",
        "two grids are given, tiny.yaml and other.yaml; give one of them",
    ),
    "neither file nor override": ("train.lr", "train.lr: is neither a file nor an override; write key=value"),
    "only without value": ("--only gate", "--only: gate: must be key=value"),
    "only of a typo": (
        "--only gats=none",
        "--only: gats is not a key of this grid; the keys that the grid varies are model.mixer.gate",
    ),
    "only of another value": (
        "--only gate=input",
        "no cell has model.mixer.gate input; the values in the cells are context, none",
    ),
    "unknown option": ("--gird tiny.yaml", "No such option: --gird"),
    "seeds down": ("--seeds 4..0", "--seeds: 4..0 counts down; write 0..4"),
    "bare seed": ("--seeds 5", "--seeds: 5 could mean seed 5 or 5 seeds"),
    "seeds in words": ("--seeds many", '--seeds: must be a range such as 0..4 or a list such as [0, 1, 2], got "many"'),
    "device word": ("--device gpu", "--device: 'gpu' is not auto, cpu, cuda or cuda:N"),
    "device number": ("--device cpu:1", "--device: 'cpu:1' is not auto, cpu, cuda or cuda:N"),
    "device number in a dry run": ("--dry-run --device cuda:one", "--device: 'cuda:one' is not auto"),
    "device not there": ("--device cuda:99", "--device: this machine has no cuda:99"),
    "no workers": ("--workers 0", "--workers: must be auto or a number from 1 to 9999, got '0'"),
    "workers in words": ("--workers all", "--workers: must be auto or a number"),
    "pack": ("--pack 1.5", "--pack: must be auto or a number"),
    "scheduler": ("--scheduler localhost", "--scheduler: 'localhost' is not an address; write tcp://HOST:PORT"),
    "nobody listens": ("--scheduler tcp://127.0.0.1:9", "--scheduler: no program answers at tcp://127.0.0.1:9"),
    "max failures": ("--max-failures 0", "'--max-failures'"),
    "override of a typo": ("task.lenght=16", "task.lenght=16: task.lenght: unknown key; did you mean task.length?"),
    "override without value": ("--set train.lr", "train.lr: this is not an override; write key=value"),
    "override of an axis": ("model.mixer.gate=none", "tiny.yaml:8 varies model.mixer.gate; edit the file instead"),
    "override twice": ("train.lr=1e-3 --set train.lr=1e-2", "train.lr is given twice; keep one"),
    "file as folder": ("--out tiny.yaml", "tiny.yaml: cannot make the folder: there is a file where"),
    "folder in a file": ("--out tiny.yaml/x", "tiny.yaml/x: cannot make the folder"),
}


@pytest.mark.parametrize("case", BAD_WORDS)
def test_an_option_that_is_none(here: Path, case: str) -> None:
    words, message = BAD_WORDS[case]
    given = [] if "grid" in case else ["--grid", "tiny.yaml"]
    before = snapshot(here)
    one_line(mclab("ablate", *given, *words.split()), message)
    assert snapshot(here) == before


@pytest.mark.parametrize("verb", ["ablate --grid tiny.yaml", "train"])
def test_an_empty_name_is_no_folder(here: Path, verb: str) -> None:
    before = snapshot(here)
    one_line(mclab(*verb.split(), "--out", ""), "Invalid value for '--out': the name is empty; give a folder")
    assert snapshot(here) == before


BAD_READS = {
    "no verb": ("tabel runs", "mclab: No such command 'tabel'"),
    "no folder given": ("table", "mclab table: Missing argument 'FOLDER'"),
    "no such folder": ("table runs/tinny", "runs/tinny: there is no such run folder"),
    "a file": ("list tiny.yaml", "tiny.yaml: this is a file, not a run folder"),
    "a folder of something": (
        "table .",
        ".: this folder holds no plan.json and no trials.json; give the --out of an ablate, ",
    ),
    "no space": ("sweep --trials 1", "mclab sweep: give a space, e.g. mclab sweep my.yaml (see mclab sweep --help)"),
    "nothing to list": ("list .", ".: this folder holds no records; give the --out"),
    "format": ("plot . --format gif", "--format: 'gif' is not one of png, svg, pdf"),
    "nearly a format": ("plot . --format pnj", "--format: 'pnj' is not one of png, svg, pdf; did you mean png?"),
    "task": ("sample mqarr", "did you mean mqar?"),
    "split": ("sample mqar --split trian", "'trian' is none of train, valid, test"),
    "task key": ("sample mqar paris=4", "did you mean task.pairs?"),
    "task rule": ("sample pairs=64", "take length 256 or at most 16 pairs"),
    "count": ("sample --count 0", "'--count'"),
    "count as a key": ("sample mqar count=3", "count=3: count is an option of this command; write --count 3"),
    "split as a key": ("sample split=test", "split=test: split is an option of this command; write --split test"),
    "seed": ("sample --seed 3000000000", "'--seed'"),
    "too small a task": (
        "sample vocab=4 length=4 pairs=1 spread=uniform --split test",
        "task: only 2 different sequences exist, too few for train, valid and test",
    ),
    "something more": ("doctor all", "mclab doctor: Got unexpected extra argument"),
    "keys of nothing": (
        "keys seqment",
        "seqment: no key has this text in its name or meaning; did you mean model.mixer",
    ),
    "a schema of something": (
        "keys --schema spaec",
        "--schema: 'spaec' is not one of grid, space; did you mean space?",
    ),
    "no grid for train": ("train --grid tiny.yaml", "mclab train: No such option: --grid"),
}


@pytest.mark.parametrize("case", BAD_READS)
def test_other_verbs_refuse_alike(here: Path, case: str) -> None:
    words, message = BAD_READS[case]
    before = snapshot(here)
    one_line(mclab(*words.split()), message)
    assert snapshot(here) == before


def test_the_folder_above_is_told_from_a_run_folder(finished: Path) -> None:
    one_line(mclab("table", finished.parent), f"did you mean {finished}?")
    one_line(mclab("list", finished.parent), f"did you mean {finished}?")


def test_a_folder_in_use_names_its_holder(here: Path) -> None:
    with Store(here / "out"):
        before = snapshot(here)
        one_line(mclab("ablate", "--grid", "tiny.yaml", "--out", "out"), "out is in use by process")
        assert snapshot(here) == before


def test_debug_shows_where_it_came_from() -> None:
    for words in (("--debug", "table", "nowhere"), ("table", "nowhere", "--debug")):
        with pytest.raises(ConfigError, match="nowhere: there is no such run folder"):
            mclab(*words)


def test_a_bug_is_no_fault_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("shapes differ")

    monkeypatch.setattr("mclab.plan.grid.load_plan", broken)
    with pytest.raises(ValueError, match="shapes differ"):
        mclab("ablate", "--grid", "tiny.yaml")

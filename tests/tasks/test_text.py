"""Bytes of files: what is read, how a file is parted, and that another corpus is another run."""

import re
from pathlib import Path

import pytest

from mclab.config.ids import canonical, run_id
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.stored import restored
from mclab.config.strict import ConfigError, leaves
from mclab.config.task import TextTask
from mclab.config.task.text import TENTHS, corpus_hash, files, part
from mclab.tasks import SPLITS, text
from tests.tasks.cases import sequences


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of 1,000 distinct numbers each, one in a folder of its own, and one that is hidden."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "b.txt").write_text(" ".join(str(n) for n in range(10_000, 11_000)))
    (tmp_path / "inner/a.txt").write_text(" ".join(str(n) for n in range(20_000, 21_000)))
    (tmp_path / ".hidden").write_text("never")
    files.cache_clear()
    return tmp_path


def run(corpus: Path | None, **task: object) -> RunConfig:
    given = {"name": "text", "corpus": None if corpus is None else str(corpus), **task}
    return parse_run({"task": given, "eval": {"valid": 4, "test": 4}})


def test_every_file_is_parted_and_no_split_reads_anothers_text(folder: Path) -> None:
    numbers = {split: set(re.findall(rb"\b\d{5}\b", part(str(folder), split))) for split in SPLITS}
    assert {split: round(len(found) / 20) for split, found in numbers.items()} == {"train": 80, "valid": 10, "test": 10}
    assert len(set.union(*numbers.values())) == sum(map(len, numbers.values()))
    assert all(any(n.startswith(first) for n in found) for found in numbers.values() for first in (b"1", b"2"))
    assert b"never" not in b"".join(files(str(folder)))
    assert TENTHS.keys() == set(SPLITS)


@pytest.mark.parametrize("split", SPLITS)
def test_a_sequence_is_a_piece_of_its_split_and_the_next_byte_is_wanted(folder: Path, split: str) -> None:
    task, whole = run(folder, length=40).task, part(str(folder), split)
    for tokens, wanted, _ in sequences(text.batch(task, [0, 5], split, 0, 20, "cpu")):
        assert bytes([*tokens, wanted[39]]) in whole
        assert [wanted[at] for at in range(39)] == tokens[1:]


def test_the_hash_is_a_key_and_another_text_is_another_run(folder: Path) -> None:
    first = run(folder)
    assert first.task.sha256 == corpus_hash(str(folder))
    assert run_id(first) == run_id(run(folder))
    (folder / "b.txt").write_text(" ".join(str(n) for n in range(30_000, 31_000)))
    files.cache_clear()
    assert run_id(run(folder)) != run_id(first)
    text._text.cache_clear()
    with pytest.raises(ValueError, match=r"sha256: corpus .* has the hash [0-9a-f]{12}…, but the run was planned with"):
        text.batch(first.task, [0], "train", 0, 1, "cpu")


def test_a_stored_run_needs_no_corpus_to_be_read(folder: Path) -> None:
    known = dict(leaves(canonical(run(folder))))
    for path in folder.rglob("*.txt"):
        path.unlink()
    files.cache_clear()
    assert restored(known).task.sha256 == known["task.sha256"]


def test_by_default_it_is_this_pythons_standard_library() -> None:
    task = TextTask()
    assert task.sha256 == corpus_hash(None) != ""
    assert b"import" in part(None, "train")
    assert min(len(part(None, split)) for split in SPLITS) > 100_000


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"corpus": "nowhere"}, "task.corpus: there is no file or folder nowhere"),
        ({"length": 3000}, "bytes, and its smallest part has 1,200, but length 3000 needs 3,001; take more text"),
        ({"vocab": 300}, "task.vocab"),
        ({"corpus": 3}, "task.corpus"),
        ({"sha256": "abc"}, "task.sha256"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, keys: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        parse_run({"task": {"name": "text", "corpus": str(folder), **keys}})
    assert len(caught.value.lines) == 1


def test_an_empty_folder_holds_no_text(tmp_path: Path) -> None:
    files.cache_clear()
    with pytest.raises(ConfigError, match="contains no text"):
        run(tmp_path)


def test_bytes_as_words() -> None:
    assert [text.token_name(TextTask(), byte) for byte in (65, 32, 10, 255)] == ["A", "\\x20", "\\x0a", "\\xff"]

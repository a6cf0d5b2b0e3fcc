"""Every command that the README and the pages after it show works as it stands there, made small."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.commands import ROOT, VERBS, fine

#: Read in this order: a page may use what an earlier one made.
PAGES = ("README.md", "docs/grids.md", "docs/reading.md", "docs/own.md", "docs/tasks.md", "docs/axes.md")
TEXT = "\n".join((ROOT / page).read_text() for page in PAGES)
#: The files that it spells out: name and content.
FILES = re.findall(
    r"`(\w+\.(?:yaml|py))`[^`]*? holds:\n\n```(?:yaml|python)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
)
#: Verbs that train, and so are given two steps, one process, and the folder that they would have without --smoke.
TRAINING = ("ablate", "train")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands(program: str) -> list[list[str]]:
    """The words of every call of a program in the shell blocks, comments left out, continued lines joined."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    words = [shlex.split(line.partition(" > ")[0], comments=True) for line in lines]
    return [each[1:] for each in words if each and Path(each[0]).name == program]


def small(words: list[str]) -> list[str]:
    if words[0] == "sweep" and "--dry-run" not in words:
        place = words.index("--trials") + 1
        few = [*words[:place], "2", *words[place + 1 :]]
        name = Path(words[words.index("--space") + 1]).stem
        sizes = ["train.steps=2", "eval.every=1000", "eval.valid=8", "eval.test=8"]
        return [*few, "--workers", "1", *sizes, "--out", f"runs/{name}"]
    if words[0] not in TRAINING or "--dry-run" in words:
        return words
    name = Path(words[words.index("--grid") + 1]).stem if "--grid" in words else words[0]
    out = [] if "--out" in words else ["--out", f"runs/{name}"]
    return [*words, "--smoke", "--workers", "1", "eval.every=1000", *out]


def test_the_commands_are_found() -> None:
    assert ["ablate"] in commands("make")
    assert {words[0] for words in commands("mclab")} == set(VERBS)
    assert [name for name, _ in FILES] == ["my.yaml", "my_mixers.py", "own.yaml"]


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, in one folder, with the grids that the README itself spells out."""
    monkeypatch.chdir(tmp_path)
    for folder in ("ablations", "sweeps"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    for words in commands("mclab"):
        stored = next((path.stem for path in Path("runs/my/weights").glob("*")), "")
        fine(*(stored if word == "ID" else word for word in small(words)))
    for block in blocks("python"):
        if block not in dict(FILES).values():
            exec(block, {})


def test_it_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


def test_every_make_target_exists() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    called = [word for words in commands("make") for word in words if "=" not in word and not word.startswith("-")]
    assert called
    assert set(called) <= set(targets)


def test_make_help_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    done = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert phony
    assert [line.split()[1] for line in done.stdout.splitlines()] == phony[1].split()
    assert all(len(line.split()) > 3 for line in done.stdout.splitlines()[1:])


def test_every_file_it_names_is_there() -> None:
    named = re.findall(r"`((?:mclab|ablations|benchmarks|tests)/[\w/.-]+)`", TEXT)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []

"""docs/extending.md: every example joins a grid, trains in a pack of two, resumes and passes mclab check."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mclab.config.run import RunConfig
from mclab.plan.grid import load_plan
from mclab.train import train_pack
from tests.commands import ROOT, fine, mclab, no_plots, one_line, records
from tests.train.test_checkpoint import assert_same, stopped, trained

PAGE = (ROOT / "docs/extending.md").read_text()
#: The page's files: name and content.
FILES = dict(re.findall(r"^```(?:python|yaml)\n# (\w+\.\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
PARTS = {
    "my_rules.Leaky": "rule",
    "my_gates.Younger": "gate",
    "my_aggregates.loudest": "aggregation",
    "my_tasks.copy": "as it is",
}
SMALL = ("train.steps=4", "train.batch=4", "eval.every=2", "eval.valid=8", "eval.test=8", "train.precision=fp64")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a user calls mclab from, with the page's files in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("my_"):
            del sys.modules[name]


def planned(here: Path, *overrides: str) -> dict[str, list[RunConfig]]:
    """The runs of each row."""
    plan = load_plan(here / "own_parts.yaml", [*SMALL, *overrides], "0..1")
    return {cell.name: list(cell.candidates[0].runs.values()) for cell in plan.cells}


def test_the_page_has_an_example_of_each_kind() -> None:
    assert set(FILES) == {*(f"{path.partition('.')[0]}.py" for path in PARTS), "own_parts.yaml"}


@pytest.mark.parametrize("part", PARTS)
def test_an_example_passes_the_check(here: Path, part: str) -> None:
    lines = fine("check", part).out.splitlines()
    assert len(lines) == (7 if part == "my_tasks.copy" else 10)
    assert all(line.endswith("  ok") for line in lines)


@pytest.mark.parametrize("row", [*PARTS.values(), "slower rule"])
def test_an_example_trains_in_a_pack_of_two_as_alone(here: Path, row: str) -> None:
    runs = planned(here)[row]
    pack, alone = train_pack(runs, device="cpu"), [train_pack([run], device="cpu")[0] for run in runs]
    for together, single in zip(pack, alone, strict=True):
        assert together.status == "done"
        losses = [[point["loss"] for point in outcome.curve] for outcome in (together, single)]
        assert losses[0] == pytest.approx(losses[1], abs=1e-9)
    assert pack[0].curve[-1]["loss"] != pack[1].curve[-1]["loss"]


@pytest.mark.parametrize("row", PARTS.values())
def test_an_example_resumes(here: Path, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = planned(here, "train.checkpoint_every=2")[row]
    whole = trained(runs, here / "whole")
    stopped(runs, here / "kept", 4, monkeypatch)
    assert_same(trained(runs, here / "kept"), whole)


def test_the_grid_trains_as_a_command_and_says_what_was_changed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed file is noticed; its raised version is another run."""
    no_plots(monkeypatch)
    words = ("ablate", "--grid", "own_parts.yaml", *SMALL, "--workers", 1, "--seeds", "0..1")
    done = fine(*words)
    stored = records(here / "runs/own_parts")
    assert [record["status"] for record in stored.values()] == ["done"] * 10
    sources = [record["provenance"]["sources"] for record in stored.values()]
    assert all("my_tasks.copy" in each for each in sources)
    assert sum("my_rules.Leaky" in each for each in sources) == 4
    assert "Mixed sources" not in done.out
    (here / "my_gates.py").write_text(FILES["my_gates.py"] + "\n# changed\n")
    more = fine(*words[:-1], "0..2")
    assert "Mixed sources of my_gates.Younger, all of them version 1" in " ".join((more.out + more.err).split())
    (here / "my_gates.py").write_text(
        FILES["my_gates.py"].replace('    """The context', '    version = 2\n\n    """The')
    )
    told = fine("ablate", "--grid", "own_parts.yaml", *SMALL, "--dry-run", "--extend").out
    assert "12 of 15 runs" in told or "12 of the runs" in told


def faulty(here: Path, key: str, value: Any) -> Any:
    return mclab("train", "--dry-run", f"{key}={value}")


@pytest.mark.parametrize(
    ("overrides", "pieces"),
    [
        (["model.mixer.memory=my_rules.Leeky"], ["model.mixer.memory: my_rules.py has no Leeky; did you mean Leaky?"]),
        (
            ["model.mixer.memory=my_rule.Leaky"],
            ["there is no module my_rule in the current folder", "did you mean my_rules?"],
        ),
        (["model.mixer.memory=my_gates.Younger"], ["Younger (my_gates.py) has no method step, which a rule needs"]),
        (
            ["model.mixer.memory=my_rules.Leaky", "model.mixer.memory_args={strat: 0.5}"],
            ["model.mixer.memory_args: my_rules.Leaky (my_rules.py:", "takes no argument strat; did you mean start?"],
        ),
        (
            ["task={name: module, module: my_tasks.copy, args: {size: 3}}"],
            ["task.args: my_tasks.copy (my_tasks.py:", "takes no argument size; it takes vocab, length"],
        ),
        (["model.mixer.gate=contxt"], ['must be context | input | none, got "contxt"; did you mean context?']),
        (["task={name: module}"], ["task.module: the function or class is missing; write its dotted path"]),
    ],
)
def test_a_wrong_path_or_argument_is_one_line(here: Path, overrides: list[str], pieces: list[str]) -> None:
    one_line(mclab("train", "--dry-run", *overrides), *pieces)


def test_a_plan_imports_nothing_of_the_users(here: Path) -> None:
    """A file that would end the process is read, not run."""
    (here / "my_rules.py").write_text("raise SystemExit\n" + FILES["my_rules.py"])
    assert "no write" not in fine("train", "--dry-run", "model.mixer.memory=my_rules.Leaky").out
    assert "my_rules" not in sys.modules


def test_a_version_is_read_from_the_source_and_in_the_id(here: Path) -> None:
    first = planned(here)["rule"][0]
    source = FILES["my_rules.py"]
    (here / "my_rules.py").write_text(source.replace("    def __init__", "    version = 3\n\n    def __init__"))
    (here / "my_tasks.py").write_text(FILES["my_tasks.py"] + "\n\ncopy.version = 2\n")
    second = planned(here)["rule"][0]
    assert second.model.mixer.versions == ("memory=3",)  # type: ignore[union-attr]
    assert second.task.version == 2  # type: ignore[union-attr]
    assert first.model.mixer.versions == ()  # type: ignore[union-attr]
    (here / "my_rules.py").write_text(source.replace("    def write", "    def wrote"))
    assert (
        "my_rules.Leaky has no method write, so that it is trained token by token"
        in fine("ablate", "--grid", "own_parts.yaml", "--dry-run").out
    )

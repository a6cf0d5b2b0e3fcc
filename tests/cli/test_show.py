"""mclab show: one run whole, found by its first digits."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.commands import fine, mclab, one_line


@pytest.fixture
def runs(here: Path, finished: Path) -> Path:
    """The tiny grid's folder where commands look for runs."""
    shutil.copytree(finished, here / "runs/tiny")
    return here / "runs/tiny"


def ids(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "records").glob("*.json"))


def test_a_run_is_found_by_its_first_digits_and_shown_whole(runs: Path) -> None:
    name = ids(runs)[0]
    text = fine("show", name[:8]).out
    assert text.startswith(f"run {name} in runs/tiny: done, seed ")
    assert re.search(r"^  train\.steps +4$", text, re.M)
    assert "train.clip" not in text
    assert re.search(r"^pairs=2 +\d\.\d{4} ", text, re.M)
    assert re.search(r"^  accuracy  [▁▂▃▄▅▆▇█]{2}  \d", text, re.M)
    assert "provenance" in text
    assert re.search(r"^  train\.clip +1\.0$", fine("show", name, "--all").out, re.M)
    assert fine("show", runs, name).out == fine("show", name, runs).out


def test_a_run_for_programs_is_its_record_and_its_curve(runs: Path) -> None:
    name = ids(runs)[0]
    facts = fine("show", name, "--json").json
    stored = json.loads((runs / f"records/{name}.json").read_text())
    assert {key: facts[key] for key in stored if key != "config"} == {k: v for k, v in stored.items() if k != "config"}
    assert facts["config"].items() <= stored["config"].items()
    assert [look["step"] for look in facts["curve"]] == [2, 4]
    assert "train.steps" in facts["differs"]


def test_an_unknown_or_unclear_run_is_one_line_with_near_ones(runs: Path, here: Path) -> None:
    first = ids(runs)[0]
    other = ("0" if first[3] != "0" else "1") + first[4:]
    one_line(mclab("show", first[:3] + other), "no run id in runs begins with these digits; did you mean", first)
    one_line(mclab("show", "xyz"), "'xyz' is no run id")
    shutil.copytree(runs, here / "runs/copy")
    done = fine("show", first.upper() + ".json")
    assert done.out.startswith(f"run {first} in runs/copy")
    assert done.err == f"run {first} is stored in runs/copy and runs/tiny; the copy in runs/copy is used\n"
    assert fine("show", first, "runs/copy").out.startswith(f"run {first} in runs/copy")
    one_line(mclab("show", first, "runs/none"), "runs/none: there is no such run folder")


def test_many_runs_that_begin_alike_ask_for_more_digits(here: Path) -> None:
    folder = here / "runs/many/records"
    folder.mkdir(parents=True)
    for digit in "abcdef":
        (folder / f"12{digit * 14}.json").write_text("{}")
    one_line(
        mclab("show", "12"),
        "6 run ids in runs begin with these digits: 12aaaaaaaaaaaaaa, ",
        " and 3 more; give more digits",
    )

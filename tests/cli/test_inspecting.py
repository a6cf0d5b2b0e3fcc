"""show, compare and doctor, as a user meets them."""

import json
import re
import shutil
from importlib import import_module, metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tests.commands import fine, mclab, no_plots, one_line


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
    one_line(mclab("show", first[:3] + other), "no run in runs begins so; did you mean", first)
    one_line(mclab("show", "xyz"), "'xyz' is no run id")
    shutil.copytree(runs, here / "runs/copy")
    done = fine("show", first.upper() + ".json")
    assert done.out.startswith(f"run {first} in runs/copy")
    assert done.err == f"run {first} is stored in runs/copy and runs/tiny; this is the one in runs/copy\n"
    assert fine("show", first, "runs/copy").out.startswith(f"run {first} in runs/copy")
    one_line(mclab("show", first, "runs/none"), "runs/none: no such run folder")


def test_many_runs_that_begin_alike_ask_for_more_digits(here: Path) -> None:
    folder = here / "runs/many/records"
    folder.mkdir(parents=True)
    for digit in "abcdef":
        (folder / f"12{digit * 14}.json").write_text("{}")
    one_line(mclab("show", "12"), "6 runs in runs begin so: 12aaaaaaaaaaaaaa, ", " and 3 more; give more digits")


def test_two_rows_by_name_or_by_key(finished: Path) -> None:
    text = fine("compare", finished, "context", "none").out
    assert text.startswith("first:  context\nsecond: none\n\nslice ")
    assert re.search(r"^pairs=2 +0\.\d{3} ± 0\.\d{3} \(2\) .* \(2 pairs\)  –$", text, re.M)
    assert "\np: no test; it takes three seeds in common, and differences that vary\n" in text
    assert text.endswith("\ndiffer in model.mixer.aggregate grm → residual; model.mixer.gate context → none\n")
    assert fine("compare", finished, "gate=context", "model.mixer.gate=none").out == text
    assert fine("compare", f"{finished}:context", f"{finished}:none").out == text
    (facts,) = fine("compare", finished, "context", "none", "--json").json
    assert [line["slice"] for line in facts["slices"]] == ["all", "pairs=1", "pairs=2"]
    assert facts["also"] == []


def test_rows_of_two_folders_and_what_else_is_not_equal(
    here: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_plots(monkeypatch)
    fine("ablate", "--grid", "tiny.yaml", "--workers", 1, "--out", "other", "train.lr=0.02", "--seeds", "0..2")
    text = fine("compare", f"{finished}:none", "other:none").out
    assert f"first:  none  ({finished})\nsecond: none  (other)\n" in text
    assert "! also differ in train.lr 0.01 → 0.02\n" in text
    assert "! also differ in seeds 0, 1 and 0..2; paired over 0, 1\n" in text
    assert fine("compare", f"{finished}:none", "other").out == text
    both = fine("compare", finished, "other").out
    assert both.endswith(text)
    assert both.startswith("first:  context  (")


def test_what_cannot_be_compared_is_one_line(finished: Path) -> None:
    one_line(mclab("compare", finished, "context", "nome"), "has no row 'nome'; did you mean none?")
    one_line(mclab("compare", finished, "context", "gats=none"), "gats is no varied key; did you mean gate?")
    one_line(mclab("compare", finished), "compare: write FOLDER ROW ROW")
    one_line(mclab("compare", "nowhere", "a", "b"), "nowhere: no such run folder")


def test_doctor_reads_the_machine() -> None:
    text = fine("doctor").out
    assert [line for line in text.splitlines() if line[:1].strip()] == [
        *("versions", "devices", "kernels", "machine", "disk", "optional", "all that mclab needs is there"),
    ]
    assert max(map(len, text.splitlines())) < 160
    assert "not there yet, can be made" in text
    kernels = " ".join(text.split())
    assert "torch linear, dla, titans, delta, gated_delta (Triton needs" in kernels
    assert "torch every other rule (mclab has no Triton kernel for it)" in kernels
    facts = fine("doctor", "--json").json
    assert {"torch", "polars", "cpu", "cores", "free"} <= {fact["name"] for fact in facts}
    whole = "linear, dla, titans, delta, gated_delta (Triton needs a CUDA device, not cpu)"
    assert whole in [fact["value"] for fact in facts]


def test_doctor_says_what_a_missing_option_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"optuna", "psycopg", "cmaes"} <= {fact["name"] for fact in fine("doctor", "--json").json}

    def version(name: str) -> str:
        if name == "cmaes":
            raise PackageNotFoundError(name)
        return real(name)

    def load(name: str) -> object:
        if name == "psycopg":
            raise ImportError("no pq wrapper available")
        return import_module(name)

    real = metadata.version
    monkeypatch.setattr("mclab.verbs.doctor.version", version)
    monkeypatch.setattr("mclab.verbs.doctor.import_module", load)
    lines = fine("doctor").out.splitlines()
    assert any(re.match("  -  cmaes +missing +no mclab sweep --sampler cmaes: pip install cmaes$", x) for x in lines)
    assert any(re.match(r"  -  psycopg +3\.\S+, cannot be imported +no study in PostgreSQL \(mclab", x) for x in lines)


def test_doctor_fails_where_something_needed_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mclab.verbs.doctor.requires", lambda _: ["nothing-of-that-name>=1", "pydantic>=99", "tqdm>=4"])
    done = mclab("doctor")
    assert done.code == 2
    assert "  !  nothing-of-that-name  missing" in done.out
    assert "mclab needs pydantic>=99" in done.out
    assert done.out.endswith("2 broken: mend what is marked !\n")

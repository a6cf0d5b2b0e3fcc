"""table, plot, list and show in the run folder of a sweep."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import mclab as library
from mclab.config.ids import run_id
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.plan.space_trials import Trials, as_dict
from mclab.report.sweeps.tables import terminal_text
from mclab.report.sweeps.write import write_tables
from mclab.runner import execute
from mclab.store import Store
from tests.commands import fine, mclab, one_line, snapshot, started
from tests.report.sweeps.trials import FRONT, SEVERAL, study, trial, weights
from tests.stored import done

LR = 0.0123456
GRID = {"grid": {"model.mixer.gate": ["context", "input", "none"]}, "base": {"train": {"lr": LR}}, "seeds": "0..1"}


def stored(out: Path, found: Trials) -> Path:
    """A study's folder, without records."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "trials.json").write_text(json.dumps(as_dict(found)))
    return out


@pytest.fixture
def searched(here: Path) -> tuple[Path, list[list[str]]]:
    """The folder of a study with records, and the ids of its points' runs; the first point was tried three times."""
    out = here / "runs/mc"

    def train(runs: Sequence[RunConfig], **_: object) -> list[Outcome]:
        return [done(run, steps=9, params=7) for run in runs]

    plan = plan_from(GRID, "g")
    with Store(out) as store:
        execute(plan, store, train=train)
    ids = [[run_id(run) for run in cell.candidates[0].runs.values()] for cell in plan.cells]
    gates: list[dict[str, Any]] = [{"gate": gate, "lr": LR} for gate in ("context", "input", None)]
    own = [{"run_ids": tuple(each)} for each in ids]
    trials = (
        trial(0, "failed", gates[0], **own[0]),
        trial(1, "refused", {"gate": "input", "k": 3}, run_ids=()),
        trial(2, 0.8, gates[1], **own[1]),
        trial(3, "done", gates[0], **own[0], retry_of=0),
        trial(4, 0.8, gates[0], **own[0], repeat_of=3),
        trial(5, 0.8, {**gates[2], "k": 2}, **own[2], inert=("model.mixer.k",)),
    )
    stored(out, study(*trials))
    return out, ids


def test_a_table_is_printed_and_the_files_are_written_again(here: Path) -> None:
    found = study(*SEVERAL, importances=weights(gate=0.6, lr=0.4))
    stored(here / "runs/mc", found)
    done = fine("table", "runs/mc")
    assert done.out == terminal_text(found)
    written = write_tables(found, here / "expected")
    assert done.err == f"wrote into runs/mc/tables: {', '.join(path.name for path in written)}\n"
    assert snapshot(here / "runs/mc/tables") == snapshot(here / "expected")
    assert fine("table", "runs/mc", "--out", "new").err.startswith("wrote into new/tables: sweep.md, trials.csv")


def test_other_formats_are_the_files_and_json_is_the_study(here: Path) -> None:
    stored(here / "runs/mc", study(*SEVERAL))
    for form, name in (("md", "sweep.md"), ("csv", "trials.csv")):
        assert fine("table", "runs/mc", "--format", form).out == (here / "runs/mc/tables" / name).read_text()
    with started("table", "runs/mc", "--format", "parquet", folder=here) as process:
        assert process.stdout is not None
        assert process.stdout.buffer.read() == (here / "runs/mc/tables/trials.parquet").read_bytes()
    assert fine("table", "runs/mc", "--json").json == json.loads((here / "runs/mc/trials.json").read_text())
    one_line(
        mclab("table", "runs/mc", "--format", "tex"),
        "tex is for grids, but runs/mc holds a sweep; give one of text, md, csv",
    )


def test_plots_are_those_that_have_something_to_show_or_those_asked_for(here: Path) -> None:
    stored(here / "runs/one", study(*SEVERAL))
    stored(here / "runs/two", study(*FRONT, two=True, importances=weights(gate=1.0)))
    assert fine("plot", "runs/one", "--format", "svg").out.split() == [
        f"runs/one/plots/{kind}.svg" for kind in ("marginals", "contour")
    ]
    assert fine("plot", "runs/two", "--kind", "front", "--out", "new").out.split() == [
        "new/plots/front.png",
        "new/plots/front.svg",
    ]
    assert (here / "new/plots/front.png").read_bytes().startswith(b"\x89PNG")


def test_a_kind_with_nothing_to_show_says_why(here: Path, finished: Path) -> None:
    stored(here / "none", study(trial(0, "diverged", {"gate": "input"})))
    stored(here / "one", study(*FRONT[:1], trial(1, 0.3, {"gate": "input"})))
    before = snapshot(here)
    for words in (["none"], ["none", "--kind", "front"]):
        one_line(mclab("plot", *words), "none: no trial is done yet, so there is nothing to draw")
    for kind, why in (
        ("importances", "one: importances are not known: there are too few trials"),
        ("contour", "one: a contour needs two axes"),
        ("front", "one: a front needs two objectives, but the study has valid.accuracy alone"),
        (
            "heat",
            "--kind: heat is a kind for grids, but one holds a sweep; give one of importances, "
            "marginals, contour, front",
        ),
        ("fron", "did you mean front?"),
    ):
        one_line(mclab("plot", "one", "--kind", kind), why)
    assert snapshot(here) == before
    some = fine("plot", "one", "--kind", "marginals", "--kind", "front", "--format", "svg")
    assert (some.out, some.err) == (
        "one/plots/marginals.svg\n",
        "one: not drawn: front (a front needs two objectives, but the study has valid.accuracy alone)\n",
    )
    one_line(mclab("plot", finished, "--kind", "front"), "front is a kind for sweeps", "a grid; give one of accuracy,")


def test_runs_stand_by_the_trial_that_they_were_trained_for(searched: tuple[Path, list[list[str]]]) -> None:
    out, ids = searched
    head, *rows = fine("list", out).out.splitlines()
    assert head.split()[:6] == ["run_id", "status", "seed", "trial", "gate", "lr"]
    assert [row.split()[:6] for row in rows] == [
        [run, "done", str(seed), number, gate, str(LR)]
        for place, number, gate in ((1, "2", "input"), (0, "3", "context"), (2, "5", "–"))
        for seed, run in enumerate(ids[place])
    ]
    assert fine("show", ids[0][1], out).out.startswith(f"run {ids[0][1]} in {out}: done, seed 1, trial 3\n")
    assert fine("show", ids[1][0], out, "--json").json["trial"] == 2


def test_a_loaded_frame_has_the_trials(searched: tuple[Path, list[list[str]]]) -> None:
    out, ids = searched
    frame = library.load(out)
    assert dict(frame.select("run_id", "trial").iter_rows()) == {
        run: number for place, number in ((0, 3), (1, 2), (2, 5)) for run in ids[place]
    }
    assert frame.schema["trial"] == pl.Int64
    assert "model.mixer.gate" in frame.columns


def test_runs_of_no_trial_come_last(searched: tuple[Path, list[list[str]]]) -> None:
    out, ids = searched
    found = study(*SEVERAL[:1])
    stored(out, replace(found, trials=(replace(found.trials[0], run_ids=tuple(ids[2])),)))
    rows = fine("list", out, "--json").json
    assert [row["trial"] for row in rows] == [0, 0, None, None, None, None]
    assert set(library.load(out)["trial"]) == {0, None}
    assert "trial" not in fine("show", ids[0][0], out, "--json").json


def test_damaged_trials_are_a_line_and_hide_no_record(searched: tuple[Path, list[list[str]]]) -> None:
    out, ids = searched
    for torn, why in (("{", "the file is no valid JSON"), ("[]", "these are not trials of mclab")):
        (out / "trials.json").write_text(torn)
        one_line(mclab("table", out), f"trials.json: {why}")
        one_line(mclab("plot", out), why)
        with pytest.raises(ConfigError, match=why):
            library.load(out)
        listed = fine("list", out)
        assert len(listed.out.splitlines()) == 7
        assert why in listed.err
        assert "the list is made from the records alone" in listed.err
        assert why in fine("show", ids[0][0], out).err


def test_a_sweep_that_has_not_ended_says_so(here: Path) -> None:
    (here / "runs/mc").mkdir(parents=True)
    (here / "runs/mc/space.yaml").touch()
    for verb in ("table", "plot"):
        one_line(mclab(verb, "runs/mc"), "runs/mc: there is no trials.json yet; the sweep writes it when it ends")
    stored(here / "runs/other", study(*SEVERAL))
    one_line(
        mclab("table", "runs"), "runs: this folder holds no plan.json and no trials.json; did you mean runs/other?"
    )

"""From a plan to a full run folder: devices, what is written when, what the command has to say in the end."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mclab.config.options import Keep, RunOptions
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.runner import Summary
from mclab.store import StoreError
from mclab.verbs.ablate import Report, ablate
from tests.stored import done

PLAN = plan_from({"grid": {"model.mixer.gate": ["context", "none"]}, "seeds": "0..1"}, "g")


@pytest.fixture(autouse=True)
def trained(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Training takes no time; `trained(error)` lets it fail."""

    def fail_with(error: BaseException | None) -> None:
        def train_pack(runs, *, device, progress=None, keep=None):
            if error:
                raise error
            return [done(run, provenance={"device": device}) for run in runs]

        monkeypatch.setattr("mclab.train.train_pack", train_pack)

    fail_with(None)
    return fail_with


def go(out: Path, plan: Any = PLAN, said: list[str] | None = None, grid: bytes | None = None, **options: Any) -> Report:
    how = RunOptions(device="cpu", workers=1, **options)
    say = [].append if said is None else said.append
    return ablate(plan, out, how, grid=grid, say=say, progress=lambda now: None)


def test_nothing_is_written_where_the_device_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this machine has no cuda:99"):
        ablate(PLAN, tmp_path / "out", RunOptions("cuda:99"), grid=None, say=pytest.fail, progress=pytest.fail)
    assert not (tmp_path / "out").exists()


# ---- what is written ----


def test_a_full_folder(tmp_path: Path) -> None:
    report = go(tmp_path / "out", grid=b"grid: ...")
    assert (report.exit_code, report.summary.ran) == (0, {"done": 4})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("curves", "grid.yaml", "lock", "plan.json", "plots", "records", "tables")
    ]
    assert all(path.is_file() for path in report.files)
    assert (tmp_path / "out/grid.yaml").read_bytes() == b"grid: ..."
    facts = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert (facts["ran"], facts["missing"], len(facts["cells"])) == ({"done": 4}, 0, 2)


def test_an_interrupt_writes_no_report_and_keeps_what_is_stored(tmp_path: Path, trained: Any) -> None:
    go(tmp_path, plan_from({"grid": {"model.mixer.gate": ["context", "none"]}, "seeds": [0]}, "g"))
    before = (tmp_path / "tables/table.csv").read_bytes()
    trained(KeyboardInterrupt())
    report = go(tmp_path)
    assert (report.exit_code, report.files) == (130, ())
    assert report.summary_line().startswith("this command: nothing run; 2 stored before; ")
    assert report.summary_line().endswith(" s; 2 stored now, 2 missing")
    assert (tmp_path / "tables/table.csv").read_bytes() == before


def test_runs_stored_without_weights_are_told_and_not_trained_again(tmp_path: Path) -> None:
    said: list[str] = []
    go(tmp_path, plan_from({"seeds": [0]}, "g"), said, save_weights=True)
    assert not any("without weights" in line for line in said)
    go(tmp_path, plan_from({"seeds": "0..1"}, "g"), said, save_weights=True)
    told = "1 run of this plan is stored without weights and not trained again; with another --out all are trained"
    assert [line for line in said if "without weights" in line] == [f"{told} and saved"]


def test_training_is_told_what_to_keep_and_what_it_remarks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Keep] = []

    def train_pack(runs, *, device, progress=None, keep=None):
        kept.append(keep)
        return [done(run, provenance={"remarks": ["a torn checkpoint"]}, weights=b"w") for run in runs]

    monkeypatch.setattr("mclab.train.train_pack", train_pack)
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    go(Path("out"), plan_from({"seeds": [3]}, "g"), said, save_weights=True)
    assert kept == [Keep(tmp_path / "out/checkpoints", weights=True)]
    (line,) = (line for line in said if "checkpoint" in line)
    assert line.startswith("base, seed 3 (run ")
    assert line.endswith("): a torn checkpoint")
    assert [path.read_bytes() for path in (tmp_path / "out/weights").iterdir()] == [b"w"]


@pytest.mark.parametrize("name", ["tables", "plots"])
def test_tables_that_cannot_be_written_are_one_line_and_no_record_is_lost(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("in the way")
    report = go(tmp_path)
    (line,) = report.unwritten
    assert f"{name}: cannot write: there is a file where a folder must be" in line
    assert (report.exit_code, bool(report.files)) == (2, True)
    (tmp_path / name).unlink()
    again = go(tmp_path)
    assert (again.exit_code, again.summary.skipped, again.unwritten) == (0, 4, ())


def test_the_plans_remarks_come_once_the_folder_is_ours(tmp_path: Path) -> None:
    said: list[str] = []
    odd = plan_from({"base": {"model": {"mixer": {"segment": 64}}}}, "g", smoke=True)
    go(tmp_path, odd, said)
    assert said[0].startswith("smoke: two steps")
    assert said[1].startswith("warning: model.mixer.segment: 64 is not below task.length 64")
    said.clear()
    with pytest.raises(StoreError, match="holds another grid"):
        go(tmp_path, PLAN, said)
    assert said == []
    go(tmp_path, PLAN, said, extend=True)


# ---- what is told ----


def report_of(stored: dict[str, int], ran: dict[str, int], missing: int = 0, **more: Any) -> Report:
    summary = Summary(Counter(ran), Counter(stored), missing, 7.4, **more)
    return Report(PLAN, Path("out"), {}.get, summary, ())


@pytest.mark.parametrize(
    ("report", "code", "told"),
    [
        (report_of({"done": 4}, {"done": 3}), 0, "this command: 3 done; 1 stored before; 7 s"),
        (report_of({"done": 4}, {}), 0, "this command: nothing run; 4 stored before; 7 s"),
        (report_of({"done": 3, "pruned": 1}, {}), 0, "this command: nothing run; 4 stored before; 7 s"),
        (
            report_of({"done": 3, "diverged": 1}, {"done": 3, "diverged": 1}),
            3,
            "this command: 1 diverged, 3 done; 0 stored before; 7 s",
        ),
        (
            report_of({"done": 3, "oom": 1}, {"oom": 1}),
            3,
            "this command: 1 oom; 3 stored before; 7 s; --retry-failed tries the failed runs again",
        ),
        (
            report_of(
                {"done": 1, "failed": 1},
                {"done": 1, "failed": 1},
                2,
                stopped="stopped after 1 failed run (--fail-fast)",
            ),
            3,
            "this command: 1 done, 1 failed; 0 stored before; 7 s; stopped after 1 failed run (--fail-fast); "
            "2 runs still missing; the same command continues from here",
        ),
        (
            report_of({"done": 1}, {"done": 1}, 3, stopped="interrupted", interrupted=True),
            130,
            "this command: 1 done; 0 stored before; 7 s; 1 stored now, 3 missing",
        ),
    ],
)
def test_one_line_and_an_exit_code(report: Report, code: int, told: str) -> None:
    assert (report.exit_code, report.summary_line()) == (code, told)

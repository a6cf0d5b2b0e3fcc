"""A formula that has changed since runs were stored: what was stored loads and is tabled, and is compared with nothing
that was made after."""

import pytest

from mclab.config.stored import clashing
from mclab.config.strict import ConfigError
from mclab.config.versions import VERSIONS
from mclab.plan.grid import load_plan
from mclab.report.prose.notes import notes
from mclab.report.prose.verdict import verdict
from mclab.report.table.summary import summarise
from mclab.store import Records
from mclab.train.weights import load_model
from tests.commands import TINY, fine, grid_file, no_plots, one_line, records, snapshot
from tests.commands import mclab as command
from tests.stored import alter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The tiny grid's run folder: two seeds of GRM with the context gate, two without a gate, which is residual."""
    no_plots(monkeypatch)
    monkeypatch.chdir(tmp_path)
    grid_file(tmp_path)
    fine("ablate", "--grid", "tiny.yaml", "--workers", "1", "--save-weights")
    return tmp_path / "runs" / "tiny"


@pytest.fixture
def changed(monkeypatch):
    """GRM's formula at its second version."""
    monkeypatch.setitem(VERSIONS, "aggregate.grm", 2)


def test_what_is_stored_loads_and_is_tabled_as_it_was(folder, changed):
    before = (folder / "tables" / "table.csv").read_text()
    done = fine("table", str(folder))
    assert (folder / "tables" / "table.csv").read_text() == before
    assert "2 runs made with version 1 of aggregate.grm, which is 2 now" in done.out
    assert len(Records(folder).scan()) == 4


def test_the_same_command_trains_again_what_has_changed_and_nothing_else(folder, changed):
    before = records(folder)
    preview = fine("ablate", "--grid", "tiny.yaml", "--dry-run")
    assert "1 of 2 cells were trained with version 1 of aggregate.grm, which is 2 now" in preview.out + preview.err
    assert "--extend" not in preview.out + preview.err
    done = fine("ablate", "--grid", "tiny.yaml", "--workers", "1")
    assert "version 1 of aggregate.grm, which is 2 now: they are trained again" in done.err
    assert "2 done; 2 stored before" in done.out + done.err
    after = records(folder)
    new = after.keys() - before.keys()
    assert len(new) == 2
    assert all(after[name]["versions"] == {"aggregate.grm": 2} for name in new)
    assert {name: after[name] for name in before} == before
    again = fine("ablate", "--grid", "tiny.yaml", "--workers", "1")
    assert "4 stored before" in again.out + again.err
    assert "version 1" not in again.err


def test_folders_of_different_versions_are_not_compared(folder, changed, tmp_path):
    fine("ablate", "--grid", "tiny.yaml", "--workers", "1", "--out", "runs/new")
    done = command("compare", f"{folder}:gate=context", "runs/new:gate=context")
    one_line(done, "aggregate.grm 1 and 2", "train the older one again")
    assert "second: none" in fine("compare", f"{folder}:gate=none", "runs/new:gate=none").out


def test_rows_of_different_versions_are_not_compared(folder):
    """A plan whose rows were made at different times: only a plan put together by hand has such rows."""
    found = Records(folder)
    plan = found.plan()
    late = set(plan.cells[1].candidates[0].run_ids().values())

    def lookup(name):
        record = found.lookup(name)
        return _with(record, {"memory.linear": 2}) if name in late else record

    summary = summarise(plan, lookup)
    assert summary.rows[1].difference.kind == "versions"
    assert summary.rows[1].p is None
    assert "Mixed versions of memory.linear: 1 and 2; rows that differ in it are not compared." in notes(summary)
    assert "none is not compared with context: trained with other versions of a formula." in verdict(summary)
    alike = summarise(plan, lambda name: _with(found.lookup(name), {"memory.linear": 2}))
    assert alike.rows[1].difference.kind != "versions"


def _with(record, versions):
    from dataclasses import replace

    return replace(record, versions=versions)


def test_a_version_of_a_part_that_one_run_lacks_is_no_clash(folder, changed):
    stored = Records(folder).scan()
    grm = [record for record in stored if record.config.model.mixer.aggregate == "grm"]
    others = [record for record in stored if record not in grm]
    assert not clashing([_with(grm[0], {"aggregate.grm": 2}), *others])
    assert clashing([_with(grm[0], {"aggregate.grm": 2}), grm[1]]) == {"aggregate.grm": ("1", "2")}


def test_weights_of_another_formula_are_refused_and_of_another_task_are_not(folder, monkeypatch):
    name = load_plan("tiny.yaml").cells[0].candidates[0].run_ids()[0]
    monkeypatch.setitem(VERSIONS, "task.mqar", 2)
    assert load_model(folder, name)[1].seed == 0
    monkeypatch.setitem(VERSIONS, "aggregate.grm", 2)
    with pytest.raises(ConfigError, match=r"version 1 of aggregate.grm, which is 2 now, so that its weights"):
        load_model(folder, name)


def test_a_record_that_claims_another_version_is_damaged(folder):
    name, *_ = records(folder)
    alter(folder / "records" / f"{name}.json", versions={"task.mqar": 2})
    said = []
    assert Records(folder, say=said.append).lookup(name) is None
    assert "it is the config of run" in said[0]


def test_a_search_goes_on_with_the_formulas_that_it_began_with(tmp_path, monkeypatch):
    no_plots(monkeypatch)
    monkeypatch.chdir(tmp_path)
    text = TINY.replace("grid: {model.mixer.gate: [context, none]}\nseeds: 0..1", "space: {train.lr: [0.01, 0.02]}")
    (tmp_path / "s.yaml").write_text(text + "sampler: random\n")
    monkeypatch.setattr("mclab.report.sweeps.write.write_plots", lambda *_: [], raising=False)
    fine("sweep", "--space", "s.yaml", "--trials", "1", "--workers", "1")
    before = snapshot(tmp_path / "runs" / "s" / "records")
    monkeypatch.setitem(VERSIONS, "memory.deep", 2)  # no point of the space has one
    fine("sweep", "--space", "s.yaml", "--trials", "1", "--workers", "1")
    monkeypatch.setitem(VERSIONS, "aggregate.grm", 2)
    done = command("sweep", "--space", "s.yaml", "--trials", "2", "--workers", "1")
    one_line(done, "it was made with version 1 of aggregate.grm, which is 2 now", "--study s-2")
    assert snapshot(tmp_path / "runs" / "s" / "records") == before

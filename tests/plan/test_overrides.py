"""`key=value` on the command line, and --smoke."""

import pytest

from mclab.config.ids import run_id
from mclab.plan.grid import plan_from
from tests.plan.conftest import Fault, Make
from tests.plan.test_grid import GATING, names, run_of


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("train.lr=2e-5", "train.lr", 0.00002),
        ("train.lr = 1", "train.lr", 1.0),
        ("task.pairs=[4,8]", "task.pairs", (4, 8)),
        ("task.pairs=4", "task.pairs", (4,)),
        ("model.mixer.gate=none", "model.mixer.aggregate", "residual"),
        ("model.mixer={name: attention}", "model.mixer.name", "attention"),
        ("model.mixer={name: attention, window: 4}", "model.mixer.window", 4),
        ("train.stop_at=null", "train.stop_at", None),
        ("train={lr: 3e-3}", "train.lr", 0.003),
        ("train.precision=bf16", "train.precision", "bf16"),
    ],
)
def test_values_are_typed_as_in_a_grid(override: str, path: str, value: object):
    found: object = run_of(plan_from({}, "x", [override]).cells[0])
    for word in path.split("."):
        found = getattr(found, word)
    assert found == value


def test_a_number_is_one_number_wherever_it_stands(plan: Make):
    ids = {
        run_id(run_of(found.cells[0]))
        for found in (
            plan("base: {train.lr: 1e-3}"),
            plan("base: {train: {lr: 0.001}}"),
            plan("question: x", "train.lr=1.0E-3"),
            plan("grid: {train.lr: [1e-3]}"),
            plan("runs: [{train.lr: .001}]"),
            plan("changes: {a: {train.lr: 1e-03}}"),
        )
    }
    assert len(ids) == 1


def test_a_whole_mixer_then_a_key_of_it_in_any_order():
    for order in (1, -1):
        run = run_of(plan_from({}, "x", ["model.mixer={name: attention}", "model.mixer.window=4"][::order]).cells[0])
        assert run.model.mixer.window == 4  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.lr", "train.lr: this is not an override; write key=value, e.g. train.steps=50"),
        ("=3", "=3: this is not an override; write key=value, e.g. train.steps=50"),
        ("seqment_size=3", "seqment_size=3: seqment_size: unknown key; did you mean model.mixer.segment?"),
        ("train.lrr=3", "train.lrr=3: train.lrr: unknown key; did you mean train.lr?"),
        ("gate=none", "gate=none: gate: unknown key; did you mean model.mixer.gate?"),
        ("train.lr=", "train.lr=: train.lr: must be float > 0, <= 1e+30, got null"),
        ("train.lr=fast", 'train.lr=fast: train.lr: must be float > 0, <= 1e+30, got "fast"'),
        ("train.steps=1e3", "train.steps=1e3: train.steps: must be int >= 1, <= 100000000, got 1000.0; take 1000"),
        (
            "model.mixer.gate=off",
            'model.mixer.gate=off: model.mixer.gate: must be none | context | input, got "off"; did you mean none?',
        ),
        ("task.pairs=[4", "task.pairs=[4: task.pairs: this is not valid YAML: while parsing a flow sequence expected"),
        ("seeds=0..3", "seeds=0..3: seeds is not a key of a run; use --seeds 0..3"),
        ("seed=a", "seed=a: seed: must be a whole number; use --seeds for several seeds"),
        ("seed=-1", "seed=-1: seed: must be int >= 0, < 2147483648, got -1; take 0"),
        ("model.heads=3", "model.heads=3: model.heads: 3 heads do not divide dim 32"),
    ],
)
def test_faults(override: str, message: str):
    with pytest.raises(ValueError, match=r".") as caught:
        plan_from({}, "g", [override])
    assert str(caught.value).startswith(message)


def test_a_key_given_twice():
    with pytest.raises(ValueError, match=r"^train.lr=2: train\.lr is given twice; keep one$"):
        plan_from({}, "x", ["train.lr=1", "train.lr=2"])


@pytest.mark.parametrize(
    ("text", "override"),
    [
        ("grid: {model.dim: [16, 32]}", "model.dim=16"),
        ("grid: {model: {dim: [16, 32]}}", "model={dim: 16}"),
        ("grid: {model: [{dim: 16}]}", "model.dim=16"),
        ("zip: {model.dim: [16, 32]}", "model.dim=16"),
        ("runs: [{}, {model.dim: 16}]", "model.dim=16"),
        ("changes: {a: {}, b: {model: {dim: 16}}}", "model.dim=16"),
        ("grid: {model.mixer.gate: [none]}", "model.mixer={name: attention}"),
        ("grid: {model.mixer: [{name: attention}]}", "model.mixer.gate=none"),
        ("grid: {model.mixer: [{name: attention}]}", "model={mixer: {name: memory}}"),
    ],
)
def test_what_the_grid_varies_cannot_be_overridden(fault: Fault, text: str, override: str):
    message = fault(f"question: x\n{text}", override)
    assert message.startswith(f"{override}: ")
    assert "g.yaml:2 varies model" in message
    assert message.endswith("; edit the file instead")


def test_what_cells_choose_cannot_be_overridden(fault: Fault):
    assert fault(GATING, "train.lr=1") == (
        "train.lr=1: train.lr: this key cannot be set here, because every cell chooses train.lr (select.over); edit "
        "the file instead"
    )


def test_neighbours_of_varied_keys_can(plan: Make):
    found = plan("grid: {train.lr: [1.0, 2.0]}", "train={steps: 3}", "train.batch=2")
    assert {(r.train.steps, r.train.batch, r.train.lr) for r in map(run_of, found.cells)} == {(3, 2, 1.0), (3, 2, 2.0)}


def test_seed_beside_seeds(fault: Fault):
    for text, options in (("seeds: 0..1\nbase: {seed: 3}", {}), ("base: {seed: 3}", {"seeds": "0..1"})):
        assert fault(text, **options).endswith("seed: both seed and seeds are given; keep seeds")
    beside = "seed=3: seed: both seed and seeds are given; "
    assert fault("seeds: 0..1", "seed=3") == f"{beside}write --seeds 3..3"
    assert fault("base: {seed: 1}", "seed=3", seeds="0..1") == f"{beside}keep --seeds"


def test_smoke_makes_everything_small_and_another_run(plan: Make):
    real, small = plan(GATING), plan(GATING, smoke=True)
    assert names(real) == names(small)
    assert small.seeds == (0, 1)
    for run in small.first_runs():
        assert (run.train.steps, run.train.batch) == (2, 8)
        assert (run.eval.every, run.eval.valid, run.eval.test) == (1, 8, 8)
    assert not {run_id(run) for run in real.first_runs()} & {run_id(run) for run in small.first_runs()}
    assert small.notes[0].startswith("smoke: ")


def test_smoke_leaves_what_is_given_or_smaller(plan: Make):
    found = plan("base: {eval.test: 4}\ngrid: {train.steps: [1, 5]}", "train.batch=16", smoke=True)
    assert [(r.train.steps, r.train.batch, r.eval.test) for r in map(run_of, found.cells)] == [(1, 16, 4), (2, 16, 4)]


def test_fewer_seeds_on_the_command_line_shrink_the_choice(plan: Make):
    text = "seeds: 0..4\nselect: {over: {train.lr: [1.0, 2.0]}, seeds: 3}"
    for options in ({"seeds": "0..1"}, {"smoke": True}):
        found = plan(text, **options)
        assert found.select is not None
        assert found.select.seeds == 2
        assert "select.seeds: 3 is lowered to 2, which is the number of seeds" in found.notes


def test_smoke_limits_what_the_rows_vary_too(plan: Make):
    """Else a grid that varies its steps would train them all."""
    made = plan("zip: {train.steps: [500, 900], model.dim: [8, 16]}", smoke=True)
    assert [next(iter(c.candidates[0].runs.values())).train.steps for c in made.cells] == [2, 2]
    given = plan("zip: {train.batch: [50, 90], model.dim: [8, 16]}", "train.steps=7", smoke=True)
    assert [next(iter(c.candidates[0].runs.values())).train.steps for c in given.cells] == [7, 7]

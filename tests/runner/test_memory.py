"""How much memory a run takes: the guess grows with what makes a run larger, and is near what torch keeps."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mclab.config.options import RunOptions
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.models.lm import LM
from mclab.plan.grid import plan_from
from mclab.plan.space_load import load_space
from mclab.replicas.parameters import initialise
from mclab.runner.memory import LOGITS, memory
from mclab.runner.memory_limits import Machine, bytes_text, memory_text, memory_warnings, needs, refuse
from mclab.tasks import TASKS
from mclab.verbs.ablate import ablate, check_memory

GIB = 2**30
HERE = Machine(20 * GIB, 24 * GIB)


def run_of(**keys: Any) -> RunConfig:
    base = {path.replace("__", "."): value for path, value in keys.items()}
    return plan_from({"base": base}, "g").cells[0].candidates[0].runs[0]


def total(**keys: Any) -> int:
    return memory(run_of(**keys)).total


SMALL = {"task__length": 128, "train__batch": 4, "model__dim": 32}
MIXERS = {
    "linear": {},
    "without a cache": {"model__mixer__aggregate": "none"},
    "attention": {"model__mixer": "attention/16"},
    "titans": {"model__mixer__memory": "titans", "model__mixer__chunk": 4},
    "dla in buckets": {"model__mixer__memory": "dla", "model__mixer__segmentation": "log"},
    "gated delta": {"model__mixer__memory": "gated_delta", "model__heads": 2},
    "log linear": {"model__mixer": "log_linear"},
    "every token": {"task__name": "ar", "task__vocab": 512},
}


@pytest.mark.parametrize("name", MIXERS)
def test_the_guess_is_near_what_torch_keeps_of_a_step(name: str) -> None:
    run = run_of(**SMALL, **MIXERS[name])
    model = LM(run, 1)
    initialise(model, [0])
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def note(saved: torch.Tensor) -> torch.Tensor:
        store = saved.untyped_storage()
        if store.data_ptr() not in own:
            kept[store.data_ptr()] = store.nbytes()
        return saved

    batch = TASKS[run.task.name].batch(run.task, [0], "train", 0, run.train.batch, torch.device("cpu"))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved):
        logits = model(batch.tokens, batch.positions)
    guess = memory(run)
    # What a backward pass adds for a while is in the guess and not in what is kept for it.
    assert 0.9 < (guess.activations + guess.logits / LOGITS) / sum(kept.values()) < 4
    assert logits.numel() * 4 * LOGITS == guess.logits


@pytest.mark.parametrize(
    ("keys", "ratio"),
    [
        ({"train__batch": 128}, 1.9),
        ({"task__length": 128}, 1.9),
        ({"model__layers": 4}, 1.8),
        ({"model__dim": 64}, 1.6),
        ({"model__mixer__memory": "titans"}, 5.0),
        ({"train__steps": 10**8}, 1000.0),
        ({"eval__task": {"length": 8192}}, 3.0),
        ({"train__precision": "fp64"}, 1.8),
    ],
)
def test_what_makes_a_run_larger_makes_the_guess_larger(keys: dict[str, Any], ratio: float) -> None:
    assert ratio < total(**keys) / total() < 2000 * ratio


def test_runs_that_train_together_take_their_sum() -> None:
    assert memory(run_of(), 4).total == 4 * total()


def test_what_fits_is_no_warning_and_the_advice_fits() -> None:
    (need,) = needs([("wide", run_of(train__batch=2**16))])
    (line,) = memory_warnings([need], 1, HERE)
    assert line.startswith(
        "1 of 1 cells may not fit into memory: wide needs roughly 47 GiB (its activations alone: 45 GiB), "
    )
    _, _, batch = line.rpartition("take train.batch ")
    (less,) = needs([("wide", run_of(train__batch=int(batch)))])
    (more,) = needs([("wide", run_of(train__batch=2 * int(batch)))])
    assert less.process <= HERE.free < more.process
    assert [*memory_warnings([less], 1, HERE), *memory_warnings([need], 1, None)] == []


def test_several_processes_are_told_how_many_would_fit() -> None:
    (need,) = needs([("base", run_of(train__batch=2**13))])
    (line,) = memory_warnings([need], 8, HERE)
    assert f"take --workers {HERE.free // need.process}, or " in line
    assert memory_text(need, 8).startswith(f"roughly {bytes_text(need.process)} of memory for each process, ")


def test_too_many_kept_memories_are_refused_with_the_segment_that_fits() -> None:
    keys: dict[str, Any] = {
        "task__length": 2**15,
        "train__batch": 1,
        "model__dim": 64,
        "model__mixer__memory": "titans",
        "model__mixer__segment": 2,
    }
    (need,) = needs([("cached", run_of(**keys))])
    with pytest.raises(ConfigError, match=r"^memory: cached .* TiB \(its activations alone: .* TiB\), but this") as no:
        refuse(need, HERE)
    _, _, segment = str(no.value).rpartition("take model.mixer.segment ")
    (less,) = needs([("cached", run_of(**keys | {"model__mixer__segment": int(segment)}))])
    assert less.process <= HERE.free
    refuse(need, None)  # another machine may have it


def test_parameters_that_no_machine_holds_are_refused_everywhere() -> None:
    (need,) = needs([("base", run_of(model__dim=2**16, model__layers=64))])
    with pytest.raises(ConfigError, match=r"alone: 1\d\d TiB\), which no machine has; take a smaller model\.dim"):
        refuse(need, None)


@pytest.mark.parametrize(("number", "text"), [(2**20, "1 MiB"), (1.25 * GIB, "1.2 GiB"), (35 * 2**40, "35 TiB")])
def test_sizes(number: float, text: str) -> None:
    assert bytes_text(number) == text


def test_a_run_that_cannot_fit_is_refused_before_its_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mclab.verbs.ablate.machine", lambda: Machine(2**26, 2**26))
    plan = plan_from({"base": {"train.batch": 128}}, "g")
    with pytest.raises(ConfigError, match=r"^memory: base needs roughly .*, but this machine has 64 MiB; take "):
        ablate(plan, tmp_path / "out", RunOptions("cpu"), grid=None, say=print, progress=print)
    assert not (tmp_path / "out").exists()
    check_memory(plan, RunOptions("cuda"))
    check_memory(plan, RunOptions("cpu", scheduler="tcp://far:8786"))


def test_a_space_is_tried_at_the_ends_of_its_axes() -> None:
    text = b"space: {train.batch: {low: 8, high: 4096}, model.dim: [8, 64], model.heads: [1, 3]}"
    found = load_space("s.yaml", content=text)
    names = [name for name, _ in found.ends()]
    assert names == ["base", "train.batch 8", "train.batch 4096", "model.dim 8", "model.dim 64", "model.heads 1"]
    assert needs(found.ends())[0].name == "train.batch 4096"

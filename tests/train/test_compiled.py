"""Steps through torch.compile: the same within rounding, few graphs, and an honest word where the compiler fails."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch

from mclab.config.outcome import ALL, Outcome
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.kernels import compile_mode
from mclab.train import step, train_pack
from mclab.train.compiled import Loss

pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.usefixtures("quiet")]
#: Traced in little time. That every mixer can be traced is shown in test_step.py.
ATTENTION = {"name": "attention"}
LINEAR = {"memory": "linear", "segment": 4}
TITANS = {"memory": "titans", "depth": 2, "segment": 4, "chunk": 4}
MIX = ({"length": 8}, {"length": 12})


def run_of(mixer: dict[str, object], seed: int = 0, mix: Sequence[object] = ()) -> RunConfig:
    return parse_run({
        "seed": seed,
        "task": {"vocab": 16, "length": 8, "pairs": [2]},
        "model": {"dim": 8, "layers": 1, "mixer": mixer},
        "train": {"steps": 4, "batch": 2, "precision": "fp64", "task": list(mix)},
        "eval": {"every": 2, "valid": 2, "test": 2},
    })  # fmt: skip


def trained(monkeypatch: pytest.MonkeyPatch, backend: object, *runs: RunConfig) -> list[Outcome]:
    """The outcomes of runs that train one after the other, compiled by this backend."""
    monkeypatch.setattr(step, "Loss", partial(Loss, backend=backend))
    with compile_mode.compiling(True):
        return [train_pack([run], device="cpu")[0] for run in runs]


def losses(outcome: Outcome) -> list[float]:
    return [row["loss"] for row in outcome.curve] + [outcome.test[ALL].loss or 0.0]


def backend_of(graphs: list[int], fails_from: int | None = None) -> Callable[..., Any]:
    """A backend that computes what it is given and counts; from that graph on it fails."""

    def compile_it(graph: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        graphs.append(len(graphs))
        if fails_from is not None and len(graphs) > fails_from:
            raise ArithmeticError("no such register\nand a long text")
        return graph.forward

    return compile_it


def test_a_graph_for_each_length_of_a_mix_serves_all_packs_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, graphs = [run_of(ATTENTION, seed, MIX) for seed in range(2)], list[int]()
    compiled, eager = trained(monkeypatch, backend_of(graphs), *runs), train_pack([runs[1]], device="cpu")[0]
    assert len(graphs) == 2
    assert [each.provenance["compiled"] for each in (*compiled, eager)] == ["yes", "yes", "no"]
    assert losses(compiled[1]) == pytest.approx(losses(eager), rel=1e-9)


@pytest.mark.product
@pytest.mark.parametrize(("mixer", "backend"), [(TITANS, "aot_eager"), (LINEAR, "inductor")])
def test_a_compiled_backward_pass_is_the_eager_one_within_rounding(
    mixer: dict[str, object], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (compiled,), eager = trained(monkeypatch, backend, run_of(mixer)), train_pack([run_of(mixer)], device="cpu")[0]
    assert compiled.provenance["compiled"] == "yes"
    assert losses(compiled) == pytest.approx(losses(eager), rel=1e-9)


def test_where_the_compiler_fails_steps_are_eager_and_every_record_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, graphs = [run_of(ATTENTION, seed, MIX) for seed in range(2)], list[int]()
    found = trained(monkeypatch, backend_of(graphs, fails_from=1), *runs)
    why = "(ArithmeticError: no such register)"
    assert [each.provenance["compiled"] for each in found] == [f"in part {why}", f"no {why}"]
    assert len(graphs) == 2
    assert losses(found[1]) == losses(train_pack([runs[1]], device="cpu")[0])


def test_a_compiler_that_gives_other_gradients_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch 2.11 did for some mixers, without an error."""

    def twice(graph: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        return lambda *inputs: tuple(2 * each for each in graph.forward(*inputs))

    (found,) = trained(monkeypatch, twice, run_of(ATTENTION))
    assert found.provenance["compiled"] == "no (its gradients differ from an eager step's by 1 of their size)"
    assert losses(found) == losses(train_pack([run_of(ATTENTION)], device="cpu")[0])


def test_without_a_cpp_compiler_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    (found,) = trained(monkeypatch, "inductor", run_of(ATTENTION))
    assert found.provenance["compiled"] == "no (no C++ compiler is found (no-such-compiler; CXX may name another))"

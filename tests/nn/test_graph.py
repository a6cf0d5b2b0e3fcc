"""`mclab.nn` as one graph: compiled, and exported to a file."""

import logging
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.covering import Row
from tests.nn.bench import DIM, T, made, tokens
from tests.tolerances import FP64


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's compiler logs all that it looks at where pytest listens."""
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "propagate", False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own code
def test_it_compiles_as_one_graph_in_bf16() -> None:
    layer, x = made(aggregate="grm", dtype=torch.bfloat16), tokens(dtype=torch.bfloat16)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), layer(x), atol=FP64, rtol=0)
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own code
def test_it_compiles_as_one_graph_with_its_gradients() -> None:
    layer, x = made(aggregate="grm"), tokens(8).requires_grad_()
    sources = [x, *layer.parameters()]
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    y, wanted = compiled(x), layer(x)
    torch.testing.assert_close(y, wanted, atol=FP64, rtol=0)
    pair = [torch.autograd.grad(each.square().sum(), sources) for each in (y, wanted)]
    for traced, plain in zip(*pair, strict=True):
        torch.testing.assert_close(traced, plain, atol=FP64, rtol=FP64)
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of torch's own code
@pytest.mark.filterwarnings("ignore:The given buffer is not writable:UserWarning")  # torch 2.11 loads weights so
@pytest.mark.parametrize(
    "keys",
    [
        {"aggregate": "grm"},
        pytest.param({"memory": "titans", "aggregate": "ssc", "chunk": 2}, marks=pytest.mark.product),
        pytest.param({"memory": "delta", "init": "checkpoint", "gate": "input"}, marks=pytest.mark.product),
    ],
    ids=lambda keys: keys.get("memory", "linear"),
)
def test_a_model_with_it_is_exported_saved_and_loaded(keys: Row, tmp_path: Path) -> None:
    """For sequences of one length, any number of them."""
    embedding = nn.Embedding(5, DIM, dtype=torch.float64)
    model = nn.Sequential(embedding, made(**keys), nn.Linear(DIM, 5, dtype=torch.float64))
    draw = torch.Generator().manual_seed(0)
    given, more = (torch.randint(5, (batch, T), generator=draw) for batch in (3, 4))
    many = {0: torch.export.Dim("batch", min=1, max=64)}
    with torch.no_grad():
        torch.export.save(torch.export.export(model, (given,), dynamic_shapes=(many,)), tmp_path / "model.pt2")
        loaded = torch.export.load(tmp_path / "model.pt2").module()
        for x in (given, more):
            torch.testing.assert_close(loaded(x), model(x), atol=FP64, rtol=0)

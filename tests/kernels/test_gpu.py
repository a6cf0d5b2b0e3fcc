"""The Triton kernels on a CUDA device, against the same definitions as in the interpreter. `make gpu` runs them."""

import pytest
import torch

from mclab.config.parse import parse_run
from mclab.kernels import dispatch
from mclab.kernels.dispatch import using
from tests.kernels.against import (
    CHOSEN,
    DEEP,
    ERASING,
    GATES,
    RATES,
    SIZES,
    chosen,
    coefficients_of,
    deep,
    erasing,
    flash,
)
from tests.train.test_step import made

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("size", [*SIZES, (600, 64, 64, 64), (700, 200, 32, 32)])
def test_flash_grm(size, kind, low) -> None:
    assert flash(size, kind, torch.float32, "cuda", low) == ""


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("case", [*CHOSEN, (600, 64, 64, 64, 2), (700, 200, 32, 32, None)])
def test_flash_ssc(case, low) -> None:
    assert chosen(case, torch.float32, "cuda", low) == ""


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("case", DEEP)
def test_the_chunk_loop(case, low) -> None:
    assert deep(case, torch.float32, "cuda", low) == ""


@pytest.mark.parametrize("case", RATES)
def test_what_rates_come_to(case) -> None:
    assert coefficients_of(case, torch.float32, "cuda") == ""


@pytest.mark.parametrize("low", [False, True])
@pytest.mark.parametrize("case", [*ERASING, (300, 16, 64, 64, True, True, (3, 18))])
def test_the_delta_rules(case, low) -> None:
    assert erasing(case, torch.float32, "cuda", low) == ""


def test_far_beyond_the_second_axis_of_a_grid() -> None:
    from mclab.kernels.linear.gate import Gate
    from mclab.kernels.linear.triton import grm

    q, k, v, u = (torch.randn(70_000, 3, 2, device="cuda") for _ in range(4))
    whole = grm.gated_read(q, k, v, Gate(u, k), 2)
    assert torch.equal(whole[-1:], grm.gated_read(q[-1:], k[-1:], v[-1:], Gate(u[-1:], k[-1:]), 2))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "mixer",
    [
        *({"segment": 8}, {"segment": 8, "aggregate": "ssc"}),
        *({"memory": "titans", "segment": 16}, {"memory": "dla"}, {"memory": "gated_delta"}),
    ],
)
def test_a_model_trains_alike_with_kernels_and_without(mixer, precision) -> None:
    run = parse_run({"model": {"dim": 16, "mixer": mixer}, "train": {"steps": 20, "batch": 8, "precision": precision}})
    curves = []
    for kernels in ("torch", "triton"):
        with using(kernels):
            step, batch = made(run, 2, torch.device("cuda"))
            curves.append(torch.stack([step(batch, number)[0] for number in range(1, 21)]))
            (choice,) = dispatch.choices(run, "cuda").values()
            assert choice.form == kernels, choice
    torch.testing.assert_close(curves[1], curves[0], rtol=1e-3 if precision == "fp32" else 2e-2, atol=0)

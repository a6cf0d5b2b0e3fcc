"""What Triton's interpreter computes, case by case, in a process that test_triton.py starts with TRITON_INTERPRET=1.

`python -m tests.kernels.interpreted quick` or `all` prints a line of JSON for each case: its name, what is wrong with
it (empty where nothing is) and the seconds it took.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from mclab.config.parse import parse_run
from mclab.kernels import dispatch, selfcheck
from mclab.kernels.dispatch import using
from mclab.kernels.fastweight.rates import Rates
from mclab.kernels.linear import flash_grm, flash_ssc
from mclab.kernels.linear.gate import Gate
from mclab.kernels.selfcheck import relative_rms
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
    told,
)

#: What `quick` runs of SIZES, and the only ones in fp32.
QUICK_SIZES = {(1, 1, 3, 5), (17, 7, 16, 3), (65, 40, 4, 20), (127, 50, 20, 16)}


@contextmanager
def watched(launched: list[str]) -> Iterator[None]:
    """Within the block, the names of the kernels that are launched are added to `launched`."""
    from mclab.kernels import launch

    before = launch._run

    def run(kernel: Any, *rest: Any) -> None:
        launched.append(kernel.__name__)
        before(kernel, *rest)

    with patch.object(launch, "_run", run):
        yield


def beyond_the_grid() -> str:
    """More sequences than the second axis of a grid holds stand on its first: only the launch is looked at."""
    from mclab.kernels import launch
    from mclab.kernels.linear.triton import grm

    seen: list[tuple[int, ...]] = []
    before = launch._run
    launch._run = lambda kernel, grid, tensors, options: seen.append(grid)
    try:
        q = torch.zeros(70_000, 2, 1, requires_grad=True)
        grm.gated_read(q, q, q, Gate(q, q), 1).sum().backward()
    finally:
        launch._run = before
    return "" if [grid[0] for grid in seen] == [70_000] * 3 else f"grids {seen}"


def far_programs() -> str:
    """Numbers beyond 2^31 of an offset: a program far down the first axis reads and writes its own sequence."""
    from mclab.kernels.linear.triton import grm

    G = 300
    q, k, v, u = (torch.randn(G, 3, 2, generator=torch.Generator().manual_seed(i)) for i in range(4))
    whole = grm.gated_read(q, k, v, Gate(u, k), 2)
    last = grm.gated_read(q[-1:], k[-1:], v[-1:], Gate(u[-1:], k[-1:]), 2)
    return "" if torch.equal(whole[-1:], last) else "the last sequence differs"


def unread() -> str:
    """A tile that none of a tile's tokens chose is not read: what is no number there reaches nobody.

    Tokens 32 to 47 are one tile of rows and choose nothing else, tokens 0 to 31 are one tile of columns.
    """
    from mclab.kernels.linear.triton import ssc

    own = (torch.arange(48) // 8)[None, :, None]
    columns = torch.cat((own * (torch.arange(48) >= 32)[:, None], own), -1)
    for lost, kept in ((slice(0, 32), slice(32, 48)), (slice(32, 48), slice(0, 32))):
        given = [torch.ones(1, 48, width, dtype=torch.float64) for width in (4, 4, 4, 2)]
        for x in given:
            x[:, lost] = torch.nan
            x.requires_grad_()
        y = ssc.weighted_read(*given, columns, 8)
        made = [y, *torch.autograd.grad(y, given, torch.ones_like(y))]
        if not all(x[:, kept].isfinite().all() for x in made):
            return f"tokens {kept} read what they did not choose"
    return ""


def layered(case: dict[str, object]) -> str:
    """A caching layer with kernels against its definition, with all gradients; ties against torch's form.

    Which of equal scores are chosen is up to the device, and the same for both forms.
    """
    from tests.caching.test_layer import layer_and_inputs, recurrent
    from tests.caching.test_route import in_training

    case, tied = {**case}, "tied" in case
    early = bool(case.pop("early", case.pop("tied", False)))
    layer, inputs = layer_and_inputs(aggregate="ssc", length=17, heads=1, replicas=1, batch=1, segment=3, **case)
    in_training(layer, early=early and not tied, length=17, sequences=1)
    if tied:
        inputs[1].data[:, :, 6:] = 0.0
    upstream = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found, launched = [], []
    for kernels in ("torch", "triton"):
        with using(kernels), patch.object(flash_ssc, "trusted", lambda *about: True), watched(launched):
            y = recurrent(layer, *inputs) if kernels == "torch" and not tied else layer(*inputs)
            sources = [*inputs, *layer.parameters()]
            found.append([y, *torch.autograd.grad(y, sources, upstream, allow_unused=True, materialize_grads=True)])
    if launched != ["weighted_forward", "weighted_rows_backward", "weighted_columns_backward"]:
        return f"launched {launched}"
    return told(found[1], found[0], torch.float64)


def trained(mixer: dict[str, object], steps: int) -> str:
    """Loss curve and gradient norms of so many steps of training, of both forms."""
    from tests.train.test_step import made

    run = parse_run({
        "task": {"vocab": 16, "length": 16, "pairs": [2]},
        "model": {"dim": 8, "heads": 1, "layers": 1, "conv": 2, "mixer": mixer},
        "train": {"steps": steps, "batch": 2, "precision": "fp64", "lr": 0.01},
    })  # fmt: skip
    curves = []
    for kernels in ("torch", "triton"):
        launched: list[str] = []
        with using(kernels), watched(launched):
            step, batch = made(run, 1, torch.device("cpu"))
            curves.append(torch.stack([torch.stack(step(batch, number)) for number in range(1, steps + 1)]))
            if bool(launched) != (kernels == "triton"):
                return f"{len(launched)} kernels launched with --kernels {kernels}"
            if dispatch._distrusted:
                return f"not trusted: {dispatch._distrusted}"
    off = relative_rms(curves[1], curves[0])
    return "" if off < 1e-9 else f"loss curves {off:.1e} apart"


def checks_itself() -> str:
    """The check before first use passes for kernels that are right, and catches one whose result is off."""
    from mclab.kernels.delta import checked
    from mclab.kernels.delta.triton import read
    from mclab.kernels.linear.triton import grm, ssc

    q, w, first = torch.randn(2, 8, 4), torch.randn(2, 8, 1), torch.zeros(2, 8, 1, dtype=torch.int64)
    cut = q.unsqueeze(0)
    source = checked.written("delta", "fp32", cut, cut, Rates(torch.rand(1, 2, 8)), ())

    def off(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *rest: kernel(*rest) * 1.01

    def states_off(kernel: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
        def made(*rest: object, **named: object) -> tuple[Tensor, Tensor]:
            y, kept = kernel(*rest, **named)
            return y, kept * 1.01

        return made

    for rule, module, name, wrong, use in (
        ("linear", grm, "gated_read", off, lambda: flash_grm.gated_read(q, q, q, Gate(q, q, 2.0, True), 4, "fp32")),
        ("linear", ssc, "weighted_read", off, lambda: flash_ssc.weighted_read(q, q, q, w, first, 8, "fp32")),
        ("delta", read, "read", states_off, lambda: source.read(cut)),
    ):
        selfcheck._seen.clear()
        use()
        if dispatch._distrusted:
            return f"not trusted: {dispatch._distrusted}"
        selfcheck._seen.clear()
        right = getattr(module, name)
        setattr(module, name, wrong(right))
        use()
        setattr(module, name, right)
        said = dict(dispatch._distrusted)
        dispatch._distrusted.clear()
        selfcheck._seen.clear()
        if "relative RMS error of" not in said.get((rule, "cpu"), ""):
            return f"{rule} one per cent off was trusted: {said}"
    return ""


#: Steps of training, in `make test` and in `make test-all`: what is off grows.
QUICK_STEPS, STEPS = 4, 8
TRAINED: dict[str, dict[str, object]] = {
    "grm": {"segment": 7},
    "soup input": {"segment": 8, "aggregate": "soup", "gate": "input"},
    "residual": {"segment": 8, "aggregate": "residual"},
    "inputs pooled, rotated": {"segment": 8, "pool_of": "inputs", "pool": "sum"},
    "titans": {"memory": "titans", "segment": 9, "chunk": 5},
    "dla": {"memory": "dla", "segment": 8, "memory_norm": "soft", "init": "checkpoint"},
    "delta": {"memory": "delta", "segment": 7},
    "gated delta, checkpoints": {"memory": "gated_delta", "segment": 6, "init": "checkpoint"},
    "ssc": {"segment": 7, "aggregate": "ssc", "k": 1},
    "titans log": {"memory": "titans", "segment": 6, "aggregate": "grm", "segmentation": "log"},
}
#: Of these, the ones that are left to `make test-all`: another has the same kernels.
SLOW = ("titans log", "gated delta, checkpoints", "inputs pooled, rotated", "soup input")


#: Gates, routes, k and ties of ssc.
LAYERED: dict[str, dict[str, object]] = {
    "context hard": {"route": "hard", "k": 2},
    "input": {"route": "explore", "gate": "input", "k": 9, "renormalise": False},
    "none": {"route": "explore", "gate": "none", "k": 1},
    "input early": {"gate": "input", "early": True},
    "ties": {"route": "explore", "connector": "shared", "k": 2, "tied": True},
}


def cases(quick: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    """Every case with its name."""
    for size in SIZES:
        for kind in GATES:
            for dtype in (torch.float64, torch.float32):
                exact, some, whole = dtype == torch.float64, size in QUICK_SIZES, kind == "context mean"
                if (some and (whole or (exact and size[0] < 60))) if quick else (some or exact):
                    name = f"flash {size} {kind} {dtype}".replace("torch.", "")
                    yield name, lambda size=size, kind=kind, dtype=dtype: flash(size, kind, dtype)
    for case in DEEP:
        for dtype in (torch.float64, torch.float32):
            if not quick or dtype == torch.float64:
                yield f"deep {case} {dtype}".replace("torch.", ""), lambda case=case, dtype=dtype: deep(case, dtype)
    for case in ERASING:
        for dtype in (torch.float64, torch.float32):
            if not quick or dtype == torch.float64:
                name = f"erasing {case} {dtype}".replace("torch.", "")
                yield name, lambda case=case, dtype=dtype: erasing(case, dtype)
    for each in CHOSEN[:3] if quick else CHOSEN:
        for dtype in (torch.float64, torch.float32):
            if not quick or dtype == torch.float64 or each == CHOSEN[1]:
                name = f"chosen {each} {dtype}".replace("torch.", "")
                yield name, lambda each=each, dtype=dtype: chosen(each, dtype)
    for name, mixer in LAYERED.items():
        yield f"layered ssc {name}", lambda mixer=mixer: layered(mixer)
    for of_rates in RATES:
        for dtype in (torch.float64, torch.float32):
            if not quick or dtype == torch.float64:
                name = f"rates {of_rates} {dtype}".replace("torch.", "")
                yield name, lambda of_rates=of_rates, dtype=dtype: coefficients_of(of_rates, dtype)
    yield "unread", unread
    yield "beyond the grid", beyond_the_grid
    yield "far programs", far_programs
    yield "checks itself", checks_itself
    for name in [each for each in TRAINED if not (quick and each in SLOW)]:
        mixer = TRAINED[name]
        steps = QUICK_STEPS if quick else STEPS
        yield f"trained {name}", lambda mixer=mixer, steps=steps: trained(mixer, steps)


def poison() -> None:
    """Memory that is only taken holds NaN: what a kernel forgets to write is seen."""

    def filled(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def made(*args: object, **kwargs: object) -> Tensor:
            taken = make(*args, **kwargs)
            return taken.fill_(torch.nan) if taken.is_floating_point() else taken

        return made

    for owner, name in ((torch, "empty"), (torch, "empty_like"), (Tensor, "new_empty")):
        setattr(owner, name, filled(getattr(owner, name)))


def bounds_are_read() -> None:
    """A loop's bound is read as Triton 3.7 does it: 3.6 turns an array of one element into a number, and numpy 2.4
    refuses that."""
    from triton.runtime import interpreter

    before = interpreter._patch_lang_tensor

    def patched(tensor: type, scope: interpreter._LangPatchScope) -> None:
        before(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    interpreter._patch_lang_tensor = patched


def main(words: list[str]) -> None:
    torch.set_num_threads(1)
    poison()
    bounds_are_read()
    for name, case in cases(words[0] == "quick"):
        if not all(word in name for word in words[1:]):
            continue
        start = time.perf_counter()
        try:
            wrong = case()
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        took = round(time.perf_counter() - start, 2)
        print(json.dumps({"case": name, "wrong": wrong, "seconds": took}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

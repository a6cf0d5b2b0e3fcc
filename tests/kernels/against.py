"""What each Triton kernel computes against its definition in fp64: outputs and gradients, case by case.

Each function returns what is wrong, empty where nothing is. In the interpreter `interpreted.py` runs them, on a GPU
test_gpu.py.
"""

from functools import partial

import torch
from torch import Tensor

from mclab.caching.route import select
from mclab.kernels.fastweight import fused
from mclab.kernels.fastweight.net import Net
from mclab.kernels.fastweight.rates import Rates, coefficients
from mclab.kernels.fastweight.states import Plan
from mclab.kernels.fastweight.steps import steps
from mclab.kernels.linear import recurrent
from mclab.kernels.linear.gate import Gate
from mclab.kernels.selfcheck import relative_rms
from tests.tolerances import LOOP, TRITON

#: T, segment, K, V: segments off the blocks, of no power of two, longer than a tile and shorter, K other than V.
SIZES = [
    *((1, 1, 3, 5), (15, 4, 16, 16), (16, 16, 5, 7), (17, 7, 16, 3), (63, 8, 8, 8), (64, 48, 16, 16)),
    *((65, 40, 4, 20), (127, 50, 20, 16)),
]
GATES = ("none", "context", "context mean", "input")
#: T, segment, K, V, and how many past segments a token chooses; None where every segment has a weight.
CHOSEN = [
    (33, 5, 4, 20, 2),
    (45, 40, 8, 8, 9),
    (18, 3, 5, 16, None),
    (65, 7, 16, 3, 1),
    (50, 40, 16, 16, None),
]
#: M, X, C, K, F, objective, norm, skip, to_start, keep, momentum, the last chunk's last place.
DEEP = [
    (3, 2, 4, 5, 1, "l2", True, True, True, (), True, 1),
    (2, 4, 16, 16, 2, "l2", True, True, True, (1,), True, 15),
    (3, 2, 3, 4, 2, "dot", True, True, False, (0, 2), False, 2),
    (2, 1, 8, 16, 1, "l2", False, False, False, (0,), True, 5),
    (2, 1, 4, 16, 1, "dot", False, True, False, (), False, 3),
    (3, 1, 8, 16, 1, "l2", True, False, True, (0, 2), True, 7),
    (2, 1, 16, 32, 1, "l2", True, True, True, (1,), True, 15),
    (2, 1, 32, 12, 1, "l2", True, True, True, (0,), True, 30),
]
#: T, C, K, V, with decay, from a state that is given, the chunks to keep.
ERASING = [
    (1, 1, 3, 5, True, True, ()),
    (15, 15, 16, 16, False, False, (0,)),
    (16, 16, 5, 20, True, True, (0,)),
    (17, 16, 20, 5, True, False, (0, 1)),
    (31, 16, 16, 3, False, True, (0, 1)),
    (48, 16, 16, 16, True, True, ()),
    (65, 13, 8, 16, True, True, (1, 4)),
    (33, 16, 16, 32, True, True, (1,)),
]
#: M, X, C, the last chunk's last place.
RATES = [(1, 1, 1, 0), (2, 2, 16, 15), (3, 1, 5, 1), (2, 1, 17, 16), (2, 1, 32, 9)]


def flash(
    size: tuple[int, int, int, int], kind: str, dtype: torch.dtype, device: str = "cpu", low: bool = False
) -> str:
    """Outputs and gradients against the recurrent form in fp64."""
    T, segment, K, V = size
    drawn = torch.Generator().manual_seed(T)
    N = -(-T // segment)
    widths = [K, K, V, *([K, K] if kind.startswith("context") else [N] if kind == "input" else [])]
    drawn_all = [torch.randn(2, T, width, generator=drawn, dtype=dtype) for width in (*widths, V)]
    if kind.startswith("context"):  # of the model's length, or fp32 cannot tell what the softmax leaves of a gradient
        drawn_all[3:5] = [torch.nn.functional.normalize(x, dim=-1) for x in drawn_all[3:5]]
    *exact, upstream = [(x.bfloat16() if low else x).to(device, torch.float64) for x in drawn_all]
    exact = [x.requires_grad_() for x in exact]
    found = []
    for fast in (True, False):
        own = [x.detach().to(dtype).requires_grad_() for x in exact] if fast else exact
        q, k, v, *rest = own
        gate = (
            Gate(rest[0], rest[1], 2.0, kind == "context mean") if len(rest) == 2 else Gate(logits=(rest or [None])[0])
        )
        if fast:
            from mclab.kernels.linear.triton import grm

            y = grm.gated_read(q, k, v, gate, segment, low)
        else:
            y = slow_read(q, k, v, gate, segment)
        found.append([y, *torch.autograd.grad(y, own, upstream.to(y))])
    return told(found[0], found[1], torch.bfloat16 if low else dtype)


def chosen(
    case: tuple[int, int, int, int, int | None], dtype: torch.dtype, device: str = "cpu", low: bool = False
) -> str:
    """Outputs and gradients of a read of chosen segments against the recurrent form in fp64.

    Many scores are equal, and the first tokens have fewer segments than they may choose.
    """
    from mclab.kernels.linear.triton import ssc

    T, segment, K, V, k = case
    drawn, N = torch.Generator().manual_seed(T), -(-T // segment)
    own = (torch.arange(T) // segment)[:, None] == torch.arange(N)
    past = (torch.arange(T) // segment)[:, None] > torch.arange(N)
    columns = None
    if k is not None:
        columns = select(torch.randint(3, (2, T, N), generator=drawn).double(), past, own, k).to(device)
    widths = (K, K, V, N if columns is None else columns.shape[-1])
    *tokens, weights, upstream = (torch.randn(2, T, width, generator=drawn, dtype=dtype) for width in (*widths, V))
    given = [(x.bfloat16() if low else x).to(device, torch.float64) for x in (*tokens, weights, upstream)]
    found = []
    for fast in (True, False):
        q, k_own, v, w = own_all = [x.to(dtype if fast else torch.float64).requires_grad_() for x in given[:4]]
        if fast:
            y = ssc.weighted_read(q, k_own, v, w, columns, segment, low)
        else:
            wide = w if columns is None else w.new_zeros(2, T, N).scatter_add(-1, columns, w)
            y = recurrent.weighted_read(q, k_own, v, wide, segment)
        found.append([y, *torch.autograd.grad(y, own_all, given[4].to(y))])
    return told(found[0], found[1], torch.bfloat16 if low else dtype)


def slow_read(q: Tensor, k: Tensor, v: Tensor, gate: Gate, segment: int) -> Tensor:
    """Token by token: pools, scores, softmax over what the token sees, and the recurrent read."""
    T, rows = q.shape[1], []
    N = -(-T // segment)
    for t in range(T):
        own = t // segment
        if gate.u is not None and gate.pooled is not None:
            cuts = [(n * segment, min((n + 1) * segment, t + 1)) for n in range(own + 1)]
            pools = [gate.pooled[:, a:b].mean(1) if gate.mean else gate.pooled[:, a:b].sum(1) for a, b in cuts]
            weights = (gate.scale * torch.stack([(gate.u[:, t] * pool).sum(-1) for pool in pools], -1)).softmax(-1)
        elif gate.logits is not None:
            weights = gate.logits[:, t, : own + 1].softmax(-1)
        else:
            weights = q.new_ones(len(q), own + 1)
        rows.append(torch.nn.functional.pad(weights, (0, N - own - 1)))
    return recurrent.weighted_read(q, k, v, torch.stack(rows, 1), segment)


def deep(case: tuple, dtype: torch.dtype, device: str = "cpu", low: bool = False) -> str:
    """Outputs, kept weights and gradients against torch's chunk loop in fp64."""
    from mclab.kernels.fastweight.triton import deep as kernel

    M, X, C, K, F, objective, norm, skip, to_start, keep, momentum, last = case
    drawn = torch.Generator().manual_seed(M + C)

    def draw(*shape: int, size: float = 1.0) -> Tensor:
        return (size * torch.randn(*shape, generator=drawn, dtype=dtype)).to(device, torch.float64)

    tokens = [torch.nn.functional.normalize(draw(M, X, C, K), dim=-1) for _ in range(3)]
    logits = [draw(M, X, C) for _ in range(3)]
    start = [draw(F, K, 4 * K, size=K**-0.5), draw(F, K, 4 * K, size=(4 * K) ** -0.5)]
    given = [*tokens, *logits, *start, *([draw(X, 1, K)] if norm else [])]
    found = []
    fast = partial(kernel.descend_and_read, low=low)
    for form, kind in ((fast, dtype), (fused.descend_and_read, torch.float64), (fused.descend_and_read, dtype)):
        own = [x.to(kind).requires_grad_() for x in given]
        q, k, v, *rates, start1, start2 = own[:8]
        net = Net(own[8] if norm else None, objective, skip, 0.03)
        padded = torch.zeros(M, X, C, dtype=torch.bool, device=device)
        padded[-1, :, last + 1 :] = True
        k, v = (x.masked_fill(padded.unsqueeze(-1), 0.0) for x in (k, v))
        logs = [torch.nn.functional.logsigmoid(x + 1).masked_fill(padded, 0.0) for x in rates[1:]] if momentum else []
        eta = (0.3 * torch.sigmoid(rates[0])).masked_fill(padded, 0.0)
        known = steps(coefficients(Rates(eta, *logs)), [C - 1] * (M - 1) + [last])
        plan = Plan((True, False), known.slots, to_start, 0 if to_start else 1, keep)
        rest = (known.writes, known.factors, known.ends, known.mix)
        y, kept = form(plan, net, (q, k, v), rest, (start1, start2))
        upstream = torch.Generator().manual_seed(1)
        ups = [torch.randn(each.shape, generator=upstream).to(each) for each in (y, *kept)]
        grads = torch.autograd.grad([y, *kept], own, ups, allow_unused=True, materialize_grads=True)
        found.append([y, *kept, *grads])
    torchs = [relative_rms(own, right) for own, right in zip(found[2], found[1], strict=True)]
    return told(found[0], found[1], torch.bfloat16 if low else dtype, LOOP, torchs)


def erasing(case: tuple, dtype: torch.dtype, device: str = "cpu", low: bool = False) -> str:
    """Outputs, kept states and gradients of the delta rules against the definition, token by token in fp64."""
    from mclab.kernels.delta import recurrent as definition
    from mclab.kernels.delta.triton import read as kernel

    T, C, K, V, gated, starts, keep = case
    X, M, drawn = 2, -(-T // C), torch.Generator().manual_seed(T)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=drawn, dtype=dtype).to(device, torch.float64)

    def cut(x: Tensor) -> Tensor:
        padded = torch.nn.functional.pad(x, (*(0, 0) * (x.dim() - 2), 0, M * C - T))
        return padded.unflatten(1, (M, C)).transpose(0, 1)

    given = [torch.nn.functional.normalize(draw(X, T, K), dim=-1) for _ in range(2)]
    given += [draw(X, T, V), torch.sigmoid(draw(X, T)), torch.nn.functional.logsigmoid(draw(X, T) + 2), draw(X, V, K)]
    found, ends = [], [min((m + 1) * C, T) - 1 for m in keep]
    for fast in (True, False):
        own = [x.to(dtype if fast else torch.float64).requires_grad_() for x in given]
        q, k, v, beta, logs, start = own
        if fast:
            rates = Rates(cut(beta), cut(logs) if gated else None)
            y, kept = kernel.read(cut(q), cut(k), cut(v), rates, keep, start if starts else None, low)
            y = y.transpose(0, 1).flatten(1, 2)[:, :T]
            made = [y] if kept is None else [y, kept]
        else:
            b, alpha = beta.unsqueeze(-1), (logs if gated else 0 * logs).exp().unsqueeze(-1)
            y, states = definition.read(q, alpha, alpha * b * k, k, b * k, v, start if starts else 0 * start)
            made = [y, states[:, ends]] if keep else [y]
        upstream = torch.Generator().manual_seed(1)
        ups = [torch.randn(x.shape, generator=upstream, dtype=dtype).to(x) for x in made]
        wanted = own[: 4 + gated] + own[5:] * starts
        found.append([*made, *torch.autograd.grad(made, wanted, ups)])
    return told(found[0], found[1], torch.bfloat16 if low else dtype)


def coefficients_of(case: tuple[int, int, int, int], dtype: torch.dtype, device: str = "cpu") -> str:
    """What rates come to and its gradients, against torch's coefficients in fp64."""
    from mclab.kernels.fastweight.triton import steps as kernel

    M, X, C, last = case
    drawn = torch.Generator().manual_seed(C)
    ends = [C - 1] * (M - 1) + [last]
    padded = torch.arange(C) > torch.tensor(ends)[:, None, None]
    eta, *logits = (torch.randn(M, X, C, generator=drawn, dtype=dtype) for _ in range(3))
    given = [torch.sigmoid(eta), *(torch.nn.functional.logsigmoid(x + 1) for x in logits)]
    given, found = [x.masked_fill(padded, 0.0).to(device, torch.float64) for x in given], []
    for fast, kind in ((True, dtype), (False, torch.float64)):
        own = [x.to(kind).requires_grad_() for x in given]
        each = kernel.steps(Rates(*own), ends) if fast else steps(coefficients(Rates(*own)), ends)
        made = [each.writes, each.factors, each.ends, each.mix]
        upstream = torch.Generator().manual_seed(1)
        ups = [torch.randn(x.shape, generator=upstream, dtype=dtype).to(x) for x in made]
        found.append([*made, *torch.autograd.grad(made, own, ups)])
    return told(found[0], found[1], dtype)


def told(
    found: list[Tensor],
    right: list[Tensor],
    dtype: torch.dtype,
    tolerances: dict[str, float] = TRITON,
    torchs: list[float] | None = None,
) -> str:
    """Empty where every tensor is within its tolerance, or within twice the error `torchs` of torch's own form."""
    off = [relative_rms(own, other) for own, other in zip(found, right, strict=True)]
    most = tolerances[str(dtype).removeprefix("torch.")]
    # What is zero by right, as the gradient of a gate of one segment, is what rounding leaves of numbers of size one.
    limits = [most if other.any() else 10 * most for other in right]
    if torchs is not None:
        limits = [max(limit, 2 * error) for limit, error in zip(limits, torchs, strict=True)]
    return (
        ""
        if all(own <= limit for own, limit in zip(off, limits, strict=True))
        else "off by " + ", ".join(f"{each:.1e}" for each in off)
    )

"""Reads sorted into blocks against a loop over tokens: outputs and gradients in fp64, however choices fall."""

import pytest
import torch

from mclab.kernels import sparse_read as kernel
from tests.layers import assert_same_with_gradients
from tests.tolerances import FP64

MEMORIES, INTO, OUT = 5, 3, 4


def spread_out(generator, T, k):
    """Any of them, none among them."""
    return torch.randint(0, MEMORIES + 1, (T, k), generator=generator)


def all_the_same(generator, T, k):
    return torch.full((T, k), 2)


def none(generator, T, k):
    return torch.full((T, k), MEMORIES)


def one_each(generator, T, k):
    """Every memory's last block holds a single token."""
    rows = torch.full((T, k), MEMORIES)
    rows[:MEMORIES, 0] = torch.arange(MEMORIES)[:T]
    return rows


SHARES = [spread_out, all_the_same, none, one_each]


def draw(share, T, k):
    generator = torch.Generator().manual_seed(T + k)
    shapes = [(T, INTO), (MEMORIES, OUT, INTO), (T, OUT), (T, k)]
    tensors = [torch.randn(*s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes]
    return share(generator, T, k), tensors


def by_blocks(memory_Tk, x, weights, y, gates):
    blocks = kernel.sort_into_blocks(memory_Tk, MEMORIES, memory_Tk.numel())
    return kernel.from_blocks(y, kernel.apply_blocks(kernel.to_blocks(x, blocks), weights, blocks), gates, blocks)


def by_token(memory_Tk, x, weights, y, gates):
    rows = []
    for t, choices in enumerate(memory_Tk.tolist()):
        reads = [gates[t, j] * (weights[n] @ x[t]) for j, n in enumerate(choices) if n < MEMORIES]
        rows.append(torch.stack([y[t], *reads]).sum(0))
    return torch.stack(rows)


@pytest.mark.parametrize("height", [1, 3, 8])
@pytest.mark.parametrize(("T", "k"), [(1, 1), (7, 2), (40, 3)])
@pytest.mark.parametrize("share", SHARES)
def test_equals_a_loop_over_tokens(monkeypatch, share, T, k, height):
    monkeypatch.setattr(kernel, "rows_in_block", lambda pairs, memories: height)
    memory_Tk, inputs = draw(share, T, k)
    fast, slow = by_blocks(memory_Tk, *inputs), by_token(memory_Tk, *inputs)
    assert_same_with_gradients(fast, slow, inputs, rtol=0)


def test_matrices_may_be_stored_as_their_transpose():
    memory_Tk, (x, weights, y, gates) = draw(spread_out, 40, 2)
    stored = weights.detach().mT.contiguous().requires_grad_()
    turned = by_blocks(memory_Tk, x, stored.mT, y, gates)
    plain = by_blocks(memory_Tk, x, weights, y, gates)
    torch.testing.assert_close(turned, plain, atol=FP64, rtol=0)
    (grad_stored,) = torch.autograd.grad(turned.square().sum(), stored)
    (grad,) = torch.autograd.grad(plain.square().sum(), weights)
    torch.testing.assert_close(grad_stored.mT, grad, atol=FP64, rtol=0)


@pytest.mark.parametrize("share", SHARES)
def test_a_memory_or_a_token_without_a_number_stays_with_those_that_meet_it(share):
    """One replica of a pack may diverge: what is filled up must carry nothing to the others."""
    memory_Tk, (x, weights, y, gates) = draw(share, 40, 2)
    bad_token, bad_memory = 6, 2
    x.data[bad_token], weights.data[bad_memory] = torch.nan, torch.nan
    met = (memory_Tk == bad_memory).any(1)
    met[bad_token] = bool((memory_Tk[bad_token] < MEMORIES).any())
    read = by_blocks(memory_Tk, x, weights, y, gates)
    assert torch.equal(read.isnan().any(1), met)
    grad_x, grad_weights = torch.autograd.grad(read, [x, weights], torch.ones_like(read))
    assert not grad_x[~(memory_Tk == bad_memory).any(1)].isnan().any()
    touched = {bad_memory, *memory_Tk[bad_token].tolist()}
    assert not any(grad_weights[n].isnan().any() for n in range(MEMORIES) if n not in touched)


@pytest.mark.parametrize("height", [1, 3, 8, 64])
@pytest.mark.parametrize("counts", [[0, 0, 0], [1, 1, 1], [9, 0, 0], [3, 8, 64], [65, 2, 17]])
def test_the_bound_on_blocks_holds(counts, height):
    needed = sum(-(-count // height) for count in counts)
    bound = kernel.blocks_at_most(sum(counts), len(counts), height)
    assert needed <= bound <= sum(counts) // height + len(counts)


@pytest.mark.parametrize(("pairs", "memories", "rows"), [(0, 4, 8), (640, 8, 32), (16000, 128, 32), (10**6, 10, 64)])
def test_rows_of_a_block_follow_the_reads_of_a_memory(pairs, memories, rows):
    assert kernel.rows_in_block(pairs, memories) == rows

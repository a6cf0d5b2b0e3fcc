"""`mclab.nn`'s cache: its size and what can be done with it."""

from itertools import product

import pytest
import torch

from mclab.caching.init import INITS
from mclab.caching.segment import SEGMENTS
from mclab.config.params import state_floats
from mclab.config.parse import parse_run
from mclab.memories import MEMORIES
from tests.covering import Row
from tests.nn.bench import DIM, LISTED, B, T, made, tokens
from tests.tolerances import FP64


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_cache_is_as_large_as_the_tables_say(memory: str) -> None:
    """In the middle of a chunk and of a segment; buckets that are still written (`log`) come on top."""
    for aggregate, init, segmentation in product(("none", "grm", "ssc"), INITS, SEGMENTS):
        keys: Row = {"memory": memory, "aggregate": aggregate, "init": init, "segmentation": segmentation}
        keys |= {"segment": 3, "segment_lengths": LISTED[segmentation], "chunk": 2, "gate": "context"}
        run = parse_run(
            {"task": {"length": T, "pairs": 1}, "model": {"dim": DIM, "heads": 2, "layers": 1, "mixer": keys}}
        )
        fixed, cached = state_floats(run)
        assert fixed is not None and cached is not None  # noqa: PT018
        layer = made(heads=2, **keys)
        with torch.no_grad():
            _, cache = layer(tokens(), cache=layer.empty_cache(B))
        assert cache.cached_floats == cached
        assert cache.floats >= fixed + cached if segmentation == "log" else cache.floats == fixed + cached


def test_the_cache_grows_by_one_memory_a_segment() -> None:
    layer, x = made(segment=4, aggregate="grm"), tokens(T)
    cache, sizes = layer.empty_cache(B), []
    with torch.no_grad():
        for t in range(T):
            _, cache = layer(x[:, t : t + 1], cache=cache)
            sizes.append((cache.segments, cache.cached_floats))
    each = DIM * DIM + DIM  # a matrix and its pool
    assert sizes == [(t // 4, t // 4 * each) for t in range(T)]


@pytest.mark.parametrize("kept", [0, 1, 2, 5])
def test_a_cut_cache_is_that_of_a_sequence_which_began_later(kept: int) -> None:
    """Where segments restart, nothing else of what came before is left without a convolution."""
    layer, x = made(memory="titans", aggregate="grm", chunk=2, conv=0), tokens()
    with torch.no_grad():
        _, full = layer(x[:, :12], cache=layer.empty_cache(B))  # three kept, the fourth is full
        cut = full.cut(kept)
        later, _ = layer(x[:, 12:], cache=cut)
        first = 3 * max(0, 3 - kept)
        torch.testing.assert_close(later, layer(x[:, first:])[:, 12 - first :], atol=FP64, rtol=0)
    assert (cut.segments, full.segments, cut.tokens) == (min(kept, 3), 3, 12)
    assert cut.floats == full.floats - max(0, 3 - kept) * (full.cached_floats // 3)


def test_a_cut_cache_keeps_its_places_for_the_input_gate() -> None:
    """A slot is the number of a segment, whatever was dropped before it."""
    layer, x = made(gate="input", gate_activation="sigmoid", aggregate="grm", slots=9), tokens(10)
    with torch.no_grad():
        _, full = layer(x[:, :9], cache=layer.empty_cache(B))
        reads = [layer(x[:, 9:], cache=full.cut(n))[1].memory.progress.kept.rows[1].tolist() for n in (3, 1)]
    assert reads == [[0, 1, 2], [1, 2]]


def test_two_continuations_of_one_cache_do_not_meet() -> None:
    layer, x = made(aggregate="ssc"), tokens(T)
    other = x.flip(1)
    with torch.no_grad():
        _, start = layer(x[:, :7], cache=layer.empty_cache(B))
        wanted = [layer(torch.cat((x[:, :7], way[:, 7:]), 1))[:, 7:] for way in (x, other)]
        caches, found = [start, start], [[], []]
        for t in range(7, T):
            for way, source in enumerate((x, other)):
                y, caches[way] = layer(source[:, t : t + 1], cache=caches[way])
                found[way].append(y)
    for got, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(torch.cat(got, 1), right, atol=FP64, rtol=0)
    assert (start.tokens, start.segments) == (7, 2)


def test_a_cache_begun_in_inference_mode_goes_on_outside_of_it() -> None:
    layer, x = made(aggregate="grm", segment=1), tokens(T)
    with torch.inference_mode():
        _, cache = layer(x[:, :5], cache=layer.empty_cache(B))
        _, cache = layer(x[:, 5:6], cache=cache)
    with torch.no_grad():
        y, _ = layer(x[:, 6:], cache=cache)
        torch.testing.assert_close(y, layer(x)[:, 6:], atol=FP64, rtol=0)


def test_a_detached_cache_ends_the_way_of_gradients() -> None:
    layer, x = made(aggregate="grm"), tokens(9).requires_grad_()
    _, cache = layer(x[:, :5], cache=layer.empty_cache(B))
    y, _ = layer(x[:, 5:], cache=cache.detach())
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert not grad[:, :5].any()
    assert grad[:, 5:].all()


def test_ssc_reads_no_more_than_it_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    """States that a token's reads are made of: its own and k, grm all, none its own; without gradients."""
    counts = dict[str, int]()
    for aggregate in ("none", "ssc", "grm"):
        layer, x = made(aggregate=aggregate, segment=1, k=2), tokens()
        with torch.no_grad():
            _, cache = layer(x[:, :13], cache=layer.empty_cache(B))
            read, seen = layer.mixer.caching.memory.read, []
            monkeypatch.setattr(
                layer.mixer.caching.memory, "read", lambda s, q, r=read, n=seen: n.append(len(q)) or r(s, q)
            )
            layer(x[:, 13:], cache=cache)
        counts[aggregate] = sum(seen) // B
    assert counts == {"none": 1, "ssc": 1 + 2, "grm": 1 + 13}

"""`mclab.nn`: whole, in pieces and token by token are the same; the cache, its size and what can be done with it."""

import copy
import inspect
import io
import logging
import re
from itertools import pairwise as neighbours
from itertools import product
from typing import Any, get_args

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import mclab
from mclab.caching.activation import ACTIVATIONS
from mclab.caching.aggregate import AGGREGATES
from mclab.caching.connector import CONNECTORS
from mclab.caching.gate import GATES
from mclab.caching.init import INITS
from mclab.caching.pool import POOLS
from mclab.caching.segment import SEGMENTS
from mclab.config.model import RULES, MemoryMixer
from mclab.config.model.cache import DecayTo, MemoryNorm, PoolOf
from mclab.config.params import state_floats
from mclab.config.parse import parse_run
from mclab.memories import MEMORIES
from mclab.models.hybrid import HYBRIDS
from mclab.nn import OWN, Cache, MemoryCaching
from tests.covering import Row, label, pairwise
from tests.layers import comparable
from tests.tolerances import BF16, FP64
from tests.verbs.sample.bench import small_run, stored

DIM, B, T = 8, 2, 14
#: Two prefills, one of them off every segment's end, and pieces of one token and of several.
PIECES = ((0, 8, 9, 10, 13, 14), (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14))
LISTED = {"constant": (), "log": (), "listed": (2, 4, 3)}
#: What each memory, aggregation, init and segmentation is met by, in turn.
OTHERS = {
    "gate": list(GATES),
    "gate_activation": list(ACTIVATIONS),
    "connector": list(CONNECTORS),
    "pool": list(POOLS),
    "pool_of": list(get_args(PoolOf)),
    "decay_to": list(get_args(DecayTo)),
    "memory_norm": list(get_args(MemoryNorm)),
    "depth": [1, 2],
    "chunk": [1, 2, 16],
    "renormalise": [True, False],
    "k": [1, 2, 9],
    "scale": [None, 0.7],
    "heads": [1, 2],
    "conv": [0, 4],
    "position": ["none", "rotary"],
    "qk_norm": [True, False],
    "out_gate": [False, True],
    "slots": [1, 2, 64],
}


def sensible(case: Row) -> Row:
    """What the config refuses, put right; queries and keys of unit length where a step grows with theirs."""
    case = comparable(case)
    deep = RULES[case["memory"]].may_be_deep and case["depth"] > 1
    if deep and (case["aggregate"], case["gate"]) == ("soup", "none"):
        case = case | {"gate": "input"}
    return case | {"qk_norm": True} if RULES[case["memory"]].erases or RULES[case["memory"]].descends else case


def every() -> list[Row]:
    """Memories × aggregations × inits × segmentations; without a cache the last two mean nothing."""
    cover, found = pairwise(OTHERS), list[Row]()
    for memory, aggregate, init, segmentation in product(MEMORIES, AGGREGATES, INITS, SEGMENTS):
        if aggregate == "none" and (init, segmentation) != ("restart", "constant"):
            continue
        own = {"memory": memory, "aggregate": aggregate, "init": init, "segmentation": segmentation}
        found.append(sensible({**own, **cover[len(found) % len(cover)]}))
    return found


def made(seed: int = 0, dtype: torch.dtype = torch.float64, **keys: Any) -> MemoryCaching:
    """Rates far from their starts, so that no product of them is near 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    segmentation = {"segment_lengths": LISTED[keys.get("segmentation", "constant")]}
    layer = MemoryCaching(DIM, **{"segment": 3, **segmentation, **keys}, generator=generator)
    for name, value in layer.named_parameters():
        if name.endswith("bias"):
            value.data.copy_(torch.randn(value.shape, generator=generator))
    return layer.to(dtype=dtype)


def tokens(length: int = T, dtype: torch.dtype = torch.float64, batch: int = B) -> Tensor:
    return torch.randn(batch, length, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)


def on_disk(layer: MemoryCaching, cache: Cache) -> Cache:
    file = io.BytesIO()
    torch.save(cache.state_dict(), file)
    file.seek(0)
    return layer.load_cache(torch.load(file, weights_only=True))


def in_pieces(layer: MemoryCaching, x: Tensor, ends: tuple[int, ...], disk_at: int | None = None) -> Tensor:
    cache, outputs = layer.empty_cache(len(x)), []
    for first, end in neighbours(ends):
        y, cache = layer(x[:, first:end], cache=cache)
        assert cache.tokens == end
        outputs.append(y)
        if end == disk_at:
            cache = on_disk(layer, cache)
    return torch.cat(outputs, 1)


@pytest.mark.parametrize("memory", MEMORIES)
def test_whole_in_pieces_and_token_by_token_are_the_same(memory: str) -> None:
    """With the cache on disk in between, off every end."""
    for case in every():
        if case["memory"] == memory:
            layer, x = made(**case), tokens()
            with torch.no_grad():
                whole = layer(x)
                for ends in PIECES:
                    torch.testing.assert_close(
                        in_pieces(layer, x, ends, disk_at=10), whole, atol=FP64, rtol=FP64, msg=label(case)
                    )


@pytest.mark.parametrize(
    "case", pairwise({"hybrid": list(HYBRIDS), "window": [1, 3, 40], "position": ["none", "rotary"]}), ids=label
)
def test_hybrids_too(case: Row) -> None:
    layer, x = made(memory="titans", heads=2, chunk=2, **case), tokens()
    with torch.no_grad():
        for ends in PIECES:
            torch.testing.assert_close(in_pieces(layer, x, ends, disk_at=10), layer(x), atol=FP64, rtol=FP64)


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("memory", ["swla", "titans", "vector"])
def test_buckets_of_many_segments(memory: str, init: str) -> None:
    """21 segments of one token: buckets of up to sixteen come and go, all of which begin again or none."""
    layer, x = made(memory=memory, init=init, segmentation="log", segment=1, chunk=2, gate="input"), tokens(21)
    with torch.no_grad():
        for ends in ((0, 5, 21), tuple(range(22))):
            torch.testing.assert_close(in_pieces(layer, x, ends, disk_at=5), layer(x), atol=FP64, rtol=FP64)


def test_every_key_of_a_grids_mixer_is_an_argument_with_the_same_default() -> None:
    """But for the segment, which a bench at toy length has shorter, and for what parts of the user's own are given."""
    given = inspect.signature(MemoryCaching).parameters
    fields = {key: field for key, field in MemoryMixer.model_fields.items() if key not in ("name", *OWN)}
    assert set(fields) <= set(given)
    differing = [key for key, field in fields.items() if given[key].default != field.default]
    assert differing == ["segment"]


@pytest.mark.parametrize("key", ["memory", "gate", "aggregate"])
def test_parts_of_ones_own_are_refused_by_name(key: str) -> None:
    with pytest.raises(ValueError, match=f"^{key}: 'my_parts.Mine' is a part of your own"):
        MemoryCaching(8, **{key: "my_parts.Mine"})


@pytest.mark.parametrize("memory", MEMORIES)
def test_gradients_are_those_of_the_parallel_form(memory: str) -> None:
    place = list(MEMORIES).index(memory)
    aggregate = [word for word in AGGREGATES if word != "none"][place % 4]
    init, segmentation = list(INITS)[place % 2], list(SEGMENTS)[place % 3]
    layer = made(memory=memory, aggregate=aggregate, init=init, segmentation=segmentation, chunk=2, heads=2)
    x = tokens(9).requires_grad_()
    sources, found = [x, *layer.parameters()], []
    for y in (layer(x), in_pieces(layer, x, (0, 5, 6, 9))):
        upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        found.append(torch.autograd.grad(y, sources, upstream, allow_unused=True, materialize_grads=True))
    for parallel, stepped in zip(*found, strict=True):
        torch.testing.assert_close(stepped, parallel, atol=FP64, rtol=FP64)
    assert found[0][0].abs().min() > 0


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


@pytest.mark.parametrize("memory", ["linear", "titans", "rwkv7", "memora"])
def test_bf16_weights_and_autocast(memory: str) -> None:
    """Against fp32 with the same rounded weights; the cache is kept in fp32 where it sums."""
    layer = made(memory=memory, aggregate="grm", heads=2, dtype=torch.bfloat16)
    exact, x = copy.deepcopy(layer).float(), tokens(dtype=torch.bfloat16)
    wanted = exact(x.float())
    with torch.no_grad():
        whole, stepped = layer(x), in_pieces(layer, x, PIECES[0])
        with torch.autocast("cpu", torch.bfloat16):
            cast, cast_stepped = exact(x.float()), in_pieces(exact, x.float(), PIECES[0])
    assert (whole.dtype, stepped.dtype) == (torch.bfloat16, torch.bfloat16)
    for y in (whole, stepped, cast, cast_stepped):
        assert ((y.float() - wanted).square().mean() / wanted.square().mean()).sqrt() < BF16


def test_bf16_weights_learn() -> None:
    layer, x = made(memory="titans", gate="input", dtype=torch.bfloat16), tokens(dtype=torch.bfloat16)
    layer(x).float().square().mean().backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in layer.parameters())
    assert {value.dtype for value in layer.parameters()} == {torch.bfloat16}


def test_the_start_follows_the_generator_or_the_global_seed() -> None:
    def start(seed: int | None = None) -> Tensor:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return torch.cat([value.flatten() for value in MemoryCaching(DIM, generator=generator).parameters()])

    assert torch.equal(start(3), start(3))
    assert not torch.equal(start(3), start(4))
    torch.manual_seed(5)
    first, second = start(), start()
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(start(), first)
    layer = copy.deepcopy(MemoryCaching(DIM))
    layer.reset_parameters(torch.Generator().manual_seed(3))
    assert torch.equal(torch.cat([value.flatten() for value in layer.parameters()]), start(3))


def test_device_and_type_are_those_that_are_asked_for() -> None:
    assert next(MemoryCaching(DIM, device="meta", dtype=torch.bfloat16).parameters()).is_meta
    with torch.device("meta"):
        assert {value.device.type for value in MemoryCaching(DIM).parameters()} == {"meta"}
    cache = made().empty_cache(B)
    _, cache = made()(tokens(), cache=cache)
    moved = cache.to("meta", torch.float32).state_dict()
    assert {each.device.type for each in moved.values() if each.dim()} == {"meta"}
    assert {each.dtype for each in moved.values()} == {torch.float32, torch.int64}


def test_state_dicts_go_round_with_the_replica_axis_and_without() -> None:
    layer, other, x = made(0, gate="input"), made(1, gate="input"), tokens()
    assert not torch.equal(layer(x), other(x))
    model = nn.Sequential(other)
    model.load_state_dict({f"0.{name}": value[0] for name, value in layer.state_dict().items()})
    assert torch.equal(model(x), layer(x))
    third = made(2, gate="input")
    third.load_state_dict(layer.state_dict())
    assert torch.equal(third(x), layer(x))


def test_gradient_checkpointing_changes_nothing() -> None:
    layer, x = made(memory="titans", aggregate="ssc", chunk=2), tokens().requires_grad_()
    sources = [x, *layer.parameters()]
    plain = torch.autograd.grad(layer(x).square().sum(), sources)
    y = checkpoint(layer, x, use_reentrant=False)
    assert all(map(torch.equal, plain, torch.autograd.grad(y.square().sum(), sources)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own code
def test_it_compiles_as_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """In fp64, and with weights in bf16. (torch's compiler logs all that it looks at where pytest listens.)"""
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "propagate", False)
    for dtype in (torch.float64, torch.bfloat16):
        layer, x = made(aggregate="grm", dtype=dtype), tokens(dtype=dtype)
        compiled = torch.compile(layer, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), layer(x), atol=FP64, rtol=0)
    torch.compiler.reset()


@pytest.mark.parametrize(
    "mixer",
    [
        {"segment": 4},
        {"memory": "titans", "gate": "input", "segmentation": "listed", "segment_lengths": [3, 5], "chunk": 64},
        {"memory": "dla", "aggregate": "none", "chunk": 64},
        {"memory": "delta", "aggregate": "ssc", "hybrid": "mal", "window": 3},
    ],
    ids=["linear", "titans", "no cache", "hybrid"],
)
def test_a_stored_runs_weights_give_what_its_mixers_give(mixer: Row, tmp_path: Any) -> None:
    """Bit for bit, read from its folder or from the file itself."""
    run = small_run(model={"layers": 2, "heads": 2, "position": "rotary", "mixer": mixer})
    name = stored(tmp_path, run)
    model, config = mclab.load_model(tmp_path, name)
    seen = list[tuple[Tensor, Tensor]]()
    for block in model.blocks:
        block.mixer.register_forward_hook(lambda _, given, y: seen.append((given[0], y)))
    batch = torch.randint(0, config.task.vocab, (1, B, config.task.length), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model(batch, torch.zeros(1, B, 1, dtype=torch.int64))
        weights = load_file(tmp_path / "weights" / f"{name}.safetensors")
        for place, (x, y) in enumerate(seen):
            layer = MemoryCaching.from_run(model, config, place)
            assert torch.equal(layer(x[0]), y[0])
            layer.reset_parameters()
            own = f"blocks.{place}."
            layer.load_state_dict(
                {key.removeprefix(own): value for key, value in weights.items() if key.startswith(f"{own}mixer.")}
            )
            assert torch.equal(layer(x[0]), y[0])


def test_a_layer_that_is_no_memory_is_not_given(tmp_path: Any) -> None:
    run = small_run(model={"layers": 2, "pattern": ["attention", "mixer"]})
    model, config = mclab.load_model(tmp_path, stored(tmp_path, run))
    for layer, message in ((0, "layer: 0 is attention, not a memory"), (2, "layer: needs .* 0 to 1, got 2")):
        with pytest.raises(ValueError, match=message):
            MemoryCaching.from_run(model, config, layer)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"dim": 0}, "dim: needs int >= 1"),
        ({"dim": 10, "heads": 3}, "heads: 3 heads do not divide dim 10"),
        ({"memory": "titan"}, "memory: needs titans"),
        ({"aggregate": "grmm"}, "aggregate: needs grm"),
        ({"gate": None}, "gate: needs none"),
        ({"segment": 0}, "segment: needs int >= 1"),
        ({"k": 1.5}, "k: needs int >= 1"),
        ({"segmentation": "listed"}, "segment_lengths: segmentation listed needs the lengths"),
        ({"memory": "titans", "aggregate": "soup", "gate": "none"}, "gate: soup mixes weights"),
        ({"dim": 6, "heads": 2, "position": "rotary"}, "position: rotary needs an even head width"),
        ({"slots": 0}, "slots: needs a whole number from 1 to 1048576, got 0"),
        ({"gain": 0.0}, "gain: needs a number above 0, got 0.0"),
    ],
)
def test_a_wrong_argument_is_named_with_its_range(keys: Row, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}[^\n]*$"):
        MemoryCaching(**{"dim": DIM, **keys})


def test_what_a_call_cannot_take_is_named() -> None:
    layer, x = made(), tokens()
    cache = layer.empty_cache(B)
    _, used = layer(x, cache=cache)
    for call, message in (
        (lambda: layer(x[0]), r"x: needs a shape \[batch, time >= 1, 8\], got \[14, 8\]"),
        (lambda: layer(x[..., :7]), r"x: .* got \[2, 14, 7\]"),
        (lambda: layer(x[:, :0]), r"x: .* got \[2, 0, 8\]"),
        (lambda: layer(x[:1], cache=used), "cache: is of 2 sequences, x of 1"),
        (lambda: made(segment=4)(x, cache=used), "cache: is of a layer with other keys"),
        (lambda: made(memory="delta").load_cache(used.state_dict()), "state: is the cache of a layer with other keys"),
        (lambda: layer.load_cache({}), "state: is no cache of this layer, 'batch' is missing"),
        (lambda: layer.empty_cache(0), "batch: needs a whole number from 1 on, got 0"),
        (lambda: used.cut(-1), "segments: needs a whole number from 0 on, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


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

"""Attention with keys of its own, and memories with window attention: against their equations, what they see, sizes."""

from typing import Any

import pytest
import torch

from mclab.config.model import RULES, MemoryMixer
from mclab.config.params import parameters, state_floats
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.memories import MEMORIES
from mclab.models.attention import Attention, window_attention
from mclab.models.hybrid import HYBRIDS
from mclab.models.lm import LM
from mclab.models.memory import CachedMemory
from mclab.models.mixers import MIXERS
from mclab.replicas.parameters import initialise
from mclab.tasks import TASKS
from mclab.train.evaluate import loss_per_replica
from mclab.train.optim import schedule
from mclab.train.pack import Pack
from tests.tolerances import FP64, PACK

R, B, T, D, WINDOW = 2, 2, 20, 8, 4
HYBRID = {"memory": "titans", "segment": 6, "chunk": 3, "window": WINDOW}


def of(seed: int = 0, **model: Any) -> RunConfig:
    return parse_run({
        "seed": seed,
        "task": {"vocab": 32, "length": T, "pairs": [2]},
        "model": {"dim": D, "heads": 2, **model},
        "train": {"precision": "fp64", "steps": 20},
    })  # fmt: skip


def layer(run: RunConfig, place: int = 0) -> torch.nn.Module:
    mixer = run.model.mixers[place]
    made = MIXERS[mixer.name](R, run.model, mixer, T, 0.5)
    initialise(made, range(R))
    generator = torch.Generator().manual_seed(0)
    for name, values in made.named_parameters():
        if "norm" in name:  # they start alike in every channel
            values.data += torch.randn(values.shape, generator=generator)
    return made.double()


def inputs(length: int = T) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(R, B, length, D, generator=generator, dtype=torch.float64, requires_grad=True)


def model_of(run: RunConfig) -> LM:
    made = LM(run, R)
    initialise(made, range(R))
    return made.double()


def logits(run: RunConfig) -> torch.Tensor:
    tokens = TASKS["mqar"].batch(run.task, list(range(R)), "train", 0, B, "cpu").tokens
    out: torch.Tensor = model_of(run)(tokens, torch.arange(T).expand(R, B, T))
    return out


@pytest.mark.parametrize("window", [None, 5])
def test_transformer_plus_plus_is_the_attention_spelled_out(window: int | None) -> None:
    preset = of(mixer={"name": "transformer++", "window": window})
    spelled = of(mixer={"name": "attention", "rotary": True, "conv": 0, "window": window})
    around = of(mixer={"name": "attention", "window": window}, position="rotary", conv=0)
    assert torch.equal(logits(preset), logits(spelled))
    assert torch.equal(logits(preset), logits(around))
    assert not any("conv" in name for name, _ in model_of(preset).named_parameters())


@pytest.mark.parametrize(
    "keys", [{"rotary": True}, {"conv": 0}, {"conv": 2}, {"rotary": True, "conv": 0}], ids=lambda keys: str(keys)
)
def test_keys_of_one_attention_leave_the_other_layers_as_they_are(keys: dict[str, Any]) -> None:
    """Beside a memory in a model without rotary positions and with a convolution of four taps."""
    plain = of(pattern=["linear", "mixer"], mixer={"name": "attention"})
    run = of(pattern=["linear", "mixer"], mixer={"name": "attention", **keys})
    memory, attention = model_of(run).blocks
    assert memory.mixer.rotary is False
    assert memory.mixer.conv.weight.shape[1] == 4
    assert attention.mixer.rotary == keys.get("rotary", False)
    taps = keys.get("conv", 4)
    assert (attention.mixer.conv.weight.shape[1] if taps else 0) == taps
    assert not torch.equal(logits(run), logits(plain))
    model_wide = {"position": "rotary"} if "rotary" in keys else {"conv": taps}
    assert not torch.equal(logits(run), logits(of(pattern=["linear", "attention"], **model_wide)))


def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight[:, None, None]


def test_memory_as_layer_adds_attention_to_what_the_memory_gives() -> None:
    made, x = layer(of(mixer={"hybrid": "mal", **HYBRID})), inputs()
    expected = made.memory(x) + made.attention(normed(made.memory(x), made.norm.weight))
    torch.testing.assert_close(made(x), expected, atol=FP64, rtol=0)


def test_memory_as_gate_is_the_product_of_both() -> None:
    made, x = layer(of(mixer={"hybrid": "mag", **HYBRID})), inputs()
    gate = 1 / (1 + torch.exp(-normed(made.memory(x), made.memory_norm.weight)))
    expected = normed(made.attention(x), made.attention_norm.weight) * gate
    torch.testing.assert_close(made(x), expected, atol=FP64, rtol=0)


def test_the_branches_of_a_gate_start_as_small_as_any_branch() -> None:
    run = of(mixer={"hybrid": "mag", **HYBRID})
    made = MIXERS["memory"](R, run.model, run.model.mixer, T, 0.25)
    initialise(made, range(R))
    assert (made.attention_norm.weight == 0.25).all()
    assert made.attention_norm.weight.decays is False
    assert (made.memory_norm.weight == 1).all()


@pytest.mark.parametrize("hybrid", HYBRIDS)
def test_its_memory_is_the_cached_memory_with_all_its_keys(hybrid: str) -> None:
    keys = {"aggregate": "ssc", "k": 1, "gate": "input", "init": "checkpoint", "out_gate": True, **HYBRID}
    made = layer(of(mixer={"hybrid": hybrid, **keys}))
    assert isinstance(made.memory, CachedMemory)
    assert isinstance(made.attention, Attention)
    assert made.memory.caching.mixer == MemoryMixer(hybrid=hybrid, **keys)
    assert made.attention.window == WINDOW


def reach(made: torch.nn.Module, x: torch.Tensor, at: int) -> list[int]:
    """The tokens that the output at `at` feels."""
    (grad,) = torch.autograd.grad(made(x)[:, :, at].sum(), x)
    return [t for t in range(x.shape[2]) if bool(grad[:, :, t].any())]


def test_window_attention_sees_its_window_and_no_further() -> None:
    """Without a convolution, and with one of three taps, which reaches two tokens beyond."""
    x = inputs()
    assert reach(layer(of(mixer={"name": "attention", "window": 4, "conv": 0})), x, 11) == [8, 9, 10, 11]
    assert reach(layer(of(mixer={"name": "attention", "window": 4, "conv": 3})), x, 11) == [6, 7, 8, 9, 10, 11]
    assert reach(layer(of(mixer="transformer++/4")), x, 2) == [0, 1, 2]


@pytest.mark.parametrize("window", [1, 5, 32, 40])
@pytest.mark.parametrize("length", [255, 256, 320, 333])
def test_a_window_in_blocks_is_a_window_under_one_mask(window: int, length: int) -> None:
    """Outputs and gradients, at lengths below, at and beyond those that are cut."""
    generator = torch.Generator().manual_seed(2)
    q, k, v, upstream = (torch.randn(2, 2, length, 4, generator=generator, dtype=torch.float64) for _ in range(4))
    sources = [z.requires_grad_() for z in (q, k, v)]
    scores = q @ k.transpose(-1, -2) / 2
    back = torch.arange(length)[:, None] - torch.arange(length)
    naive = scores.masked_fill((back < 0) | (back >= window), -torch.inf).softmax(-1) @ v
    ours = window_attention(q, k, v, window)
    torch.testing.assert_close(ours, naive, atol=FP64, rtol=0)
    grads = [torch.autograd.grad(y, sources, upstream) for y in (ours, naive)]
    for mine, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(mine, theirs, atol=FP64, rtol=0)


@pytest.mark.parametrize("hybrid", HYBRIDS)
def test_the_attention_beside_a_memory_sees_its_window_and_no_further(hybrid: str) -> None:
    """Of what it is given: for a layer the memory's outputs, which themselves go back to the first token."""
    made = layer(of(mixer={"hybrid": hybrid, **HYBRID}, conv=0))
    assert reach(made.attention, inputs(), 11) == [8, 9, 10, 11]
    assert reach(made, inputs(), 11) == list(range(12))


@pytest.mark.parametrize("hybrid", HYBRIDS)
@pytest.mark.parametrize("keys", [{}, {"aggregate": "none"}, {"init": "checkpoint", "segmentation": "log"}], ids=str)
def test_causal_at_segment_and_window_ends(hybrid: str, keys: dict[str, Any]) -> None:
    made, x = layer(of(mixer={"hybrid": hybrid, **HYBRID, **keys})), inputs().detach()
    before = made(x)
    for t in (0, 3, 4, 5, 6, 11, 12, 19):
        changed = x.clone()
        changed[:, :, t] += 1
        after = made(changed)
        torch.testing.assert_close(after[:, :, :t], before[:, :, :t], atol=FP64, rtol=0)
        assert not torch.equal(after[:, :, t], before[:, :, t])


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("hybrid", HYBRIDS)
@pytest.mark.parametrize("length", [3, T])
def test_sizes_are_those_of_the_tensors(memory: str, hybrid: str, length: int) -> None:
    """Parameters by count; state by what a hybrid has beside its memory: taps and the window's keys and values."""
    run = of(mixer={"hybrid": hybrid, "memory": memory, "segment": 6, "window": WINDOW}, conv=3)
    plain = of(mixer={"memory": memory, "segment": 6}, conv=3)
    assert parameters(run) == sum(p[0].numel() for p in LM(run, 1).parameters())
    run, plain = (
        each.model_copy(update={"task": each.task.model_copy(update={"length": length})}) for each in (run, plain)
    )
    made = layer(run)
    qkv = made.attention.qkv(inputs(length))
    kept = 0
    for token_by_token in (qkv[0, 0, -2:], qkv[0, 0, -WINDOW:, D:]):  # two inputs of the convolution; keys and values
        kept += token_by_token.numel()
    fixed, cached = (a - b for a, b in zip(state_floats(run), state_floats(plain), strict=True))
    assert (fixed, cached) == (2 * kept, 0)


def test_state_of_an_attention_follows_its_own_taps() -> None:
    assert state_floats(of(mixer="transformer++", layers=1)) == (0, 2 * T * D)
    assert state_floats(of(mixer="transformer++/4", layers=1)) == (2 * 4 * D, 0)
    assert state_floats(of(mixer={"name": "attention", "conv": 3}, layers=1)) == (2 * 3 * D, 2 * T * D)


@pytest.mark.parametrize("word", [*MEMORIES, "transformer++", "transformer++/3", "attention", "attention/3", "conv/2"])
def test_a_pattern_of_any_word_builds_is_causal_and_counted(word: str) -> None:
    run = of(pattern=[word, "attention/3"])
    made = model_of(run)
    assert parameters(run) == sum(p[0].numel() for p in made.parameters())
    tokens = TASKS["mqar"].batch(run.task, list(range(R)), "train", 0, B, "cpu").tokens
    everywhere = torch.arange(T).expand(R, B, T)
    before = made(tokens, everywhere)
    for t in (0, 7, 19):
        changed = tokens.clone()
        changed[:, :, t] = (changed[:, :, t] + 1) % 32
        after = made(changed, everywhere)
        torch.testing.assert_close(after[:, :, :t], before[:, :, :t], atol=FP64, rtol=0)
        assert not torch.equal(after[:, :, t], before[:, :, t])
    grads = torch.autograd.grad(before.square().sum(), list(made.parameters()))
    assert all(torch.isfinite(grad).all() and grad.any() for grad in grads)


def test_every_memory_that_the_config_knows_is_a_word() -> None:
    for memory in RULES:
        assert of(pattern=[memory]).model.mixers[0].memory == memory


@pytest.mark.parametrize(
    "model",
    [
        {"mixer": {"hybrid": "mal", **HYBRID}},
        {"mixer": {"hybrid": "mag", **HYBRID}},
        {"pattern": ["titans", "transformer++/4"]},
    ],
    ids=["mal", "mag", "pattern"],
)
def test_a_pack_of_two_is_two_runs(model: dict[str, Any]) -> None:
    """Twenty steps in fp64: parameters and losses."""

    def trained(*seeds: int) -> tuple[torch.Tensor, torch.Tensor]:
        runs = [of(seed, **model) for seed in seeds]
        pack, losses = Pack(runs, torch.device("cpu")), []
        for step in range(20):
            data = TASKS["mqar"].batch(runs[0].task, list(seeds), "train", step * 4, 4, "cpu")
            loss = loss_per_replica(pack.model(data.tokens, data.positions), data.answers)
            pack.update(loss, step + 1, schedule(step, 20, 0.1))
            losses.append(loss.detach())
        return pack.values_RP, torch.stack(losses)

    both, both_losses = trained(0, 1)
    for place in (0, 1):
        alone, alone_losses = trained(place)
        torch.testing.assert_close(both[place], alone[0], atol=PACK, rtol=0)
        torch.testing.assert_close(both_losses[:, place], alone_losses[:, 0], atol=PACK, rtol=0)
    assert (both[0] - both[1]).abs().max() > 1e-3

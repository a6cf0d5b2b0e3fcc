"""A task of the user's own: one pure function, of a random generator or of keys of the counter-based stream.

With the argument `generator` the function makes one sequence, on the CPU; with `keys` [N] (see `mclab.tasks.stream`) it
makes N sequences, on the device of `keys`. In both cases it returns the tokens and, for each token, the token that is
wanted after it, or `NO_ANSWER`. docs/extending.md has examples. Letters in shapes: R seeds, N sequences, T tokens, Q
scored positions.

See docs/equations.md#module.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mclab.config.own import Part
from mclab.config.strict import ConfigError
from mclab.config.task import ModuleTask
from mclab.own.found import make_part, only_named, told
from mclab.own.kept import kept
from mclab.tasks.base import NO_ANSWER, Batch, Role
from mclab.tasks.splits import ATTEMPTS, belongs, check_split
from mclab.tasks.stream import fork, mix, salts, sample_keys

#: The number of sequences from which the number of scored positions is found out.
_PROBED = 16

Made = Callable[..., Any]


class _Drawn(NamedTuple):
    """The `tokens` [N, T], the token that is `wanted` after each of them [N, T], and `fingerprints` [N]."""

    tokens: Tensor
    wanted: Tensor
    fingerprints: Tensor


def batch(
    config: ModuleTask, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
) -> Batch:
    """Return samples `start` to `start + count - 1` of `split` for each seed: R = len(seeds), B = count.

    The hash of a sequence decides which split it belongs to. A sample draws until its sequence belongs to `split`, so
    no sequence is in two splits. Q is the number of positions that a sequence scores, or T if sequences differ in it.
    Raises `ValueError` for an unknown split and an empty range, `ConfigError` for a function that fails or returns a
    wrong result.
    """
    check_split(split)
    samples = sample_keys(f"module/{config.module}/{split}", seeds, start, count, torch.device(device)).flatten()
    drawn = _settled(config, samples, split)
    positions, answers = _scored(config, drawn.wanted)
    tensors = (drawn.tokens, positions, answers, torch.zeros_like(samples), drawn.fingerprints)
    return Batch._make(tensor.reshape(len(seeds), count, *tensor.shape[1:]) for tensor in tensors)


def roles(config: ModuleTask, batch: Batch) -> Tensor:
    """Return [R, B, T] int64: `Role.QUERY` at scored positions, `Role.FILLER` elsewhere, since no more is known."""
    scored = batch.answers != NO_ANSWER
    found = torch.full_like(batch.tokens, int(Role.FILLER))
    rows, columns = scored.nonzero()[:, :-1].T, batch.positions[scored]
    found[(*rows, columns)] = int(Role.QUERY)
    return found


def token_name(config: ModuleTask, token: int) -> str:
    """Return the result of the task's method `word(token)`, if it has one; else the number of the token."""
    part = made(config)
    return str(part.word(token)) if hasattr(part, "word") else str(token)


@lru_cache(maxsize=64)
def made(config: ModuleTask) -> Made:
    """Return the user's function with its arguments, or the object of the user's class. Raises `ConfigError`."""
    part = Part("task", "task.module", "task.args", config.module, config.keywords)
    found: Made = make_part(part, {"vocab": config.vocab, "length": config.length})
    if not callable(found):
        raise ConfigError(
            f"task {config.module} makes an object of type {type(found).__name__}, which cannot be called; give its "
            "class a method __call__"
        )
    return found


def _settled(config: ModuleTask, samples: Tensor, split: str) -> _Drawn:
    """Return for each sample the sequence of its first attempt whose hash belongs to `split`.

    Raises `ConfigError` if no attempt of a sample does.
    """
    pending = torch.arange(len(samples), device=samples.device)
    settled: _Drawn | None = None
    for attempt in range(ATTEMPTS):
        drawn = draw(config, fork(samples[pending], torch.tensor([attempt + 1], device=samples.device)).squeeze(-1))
        good = belongs(drawn.fingerprints, split)
        settled = settled or _Drawn(*(torch.empty_like(each) for each in drawn))
        for into, out in zip(settled, drawn, strict=True):
            into[pending[good]] = out[good]
        pending = pending[~good]
        if not len(pending):
            return settled
    raise ConfigError(
        f"task {config.module} finds no sequence for {split} in {ATTEMPTS} attempts, because it makes too few "
        "different ones; train gets one half of them, valid and test a quarter each"
    )


def draw(config: ModuleTask, keys_N: Tensor) -> _Drawn:
    """Return the sequences that the user's function makes from `keys_N`.

    Raises `ConfigError` if the function fails, or if its result has a wrong shape or wrong tokens.
    """
    part = made(config)
    try:
        with kept(quick=True), torch.no_grad():
            tokens, wanted = _called(part, keys_N)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"task {config.module} fails: {told(error)}") from error
    for what, given, least in (("tokens", tokens, 0), ("answers", wanted, NO_ANSWER)):
        if given.shape != (len(keys_N), config.length):
            each = list(given.shape[1:]) if given.dim() > 1 else list(given.shape)
            raise ConfigError(
                f"task {config.module} gives {what} of shape {each} for a sequence, but task.length is {config.length}"
            )
        wrong = (given < least) | (given >= config.vocab) | ((given < 0) & (given != NO_ANSWER))
        if given.is_floating_point() or wrong.any():
            value = given[wrong][0].item() if wrong.any() else given.dtype
            raise ConfigError(
                (
                    f"task {config.module} gives {value} among its {what}, which must be whole numbers from 0 to "
                    f"{config.vocab - 1} (task.vocab)"
                )
                + f", or {NO_ANSWER} where nothing is asked" * (what == "answers")
            )
    tokens, wanted = tokens.long().contiguous(), wanted.long().contiguous()
    places = salts(2 * config.length, tokens.device)
    return _Drawn(tokens, wanted, mix(torch.cat((tokens, wanted), 1) + places).sum(-1))


def _called(part: Made, keys_N: Tensor) -> tuple[Tensor, Tensor]:
    taken = only_named(part, ("keys", "generator"))
    if taken == ("keys",):
        tokens, wanted = part(keys=keys_N.clone())
        return torch.as_tensor(tokens).to(keys_N.device), torch.as_tensor(wanted).to(keys_N.device)
    if taken != ("generator",):
        raise ConfigError("a task must take one argument that is named either generator or keys")
    found = []
    for key in keys_N.tolist():
        tokens, wanted = part(generator=torch.Generator().manual_seed(key))
        found.append((torch.as_tensor(tokens), torch.as_tensor(wanted)))
    both = (torch.stack(each).to(keys_N.device) for each in zip(*found, strict=True))
    return next(both), next(both)


def _scored(config: ModuleTask, wanted_NT: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scored positions [N, Q], ascending, and their answers [N, Q], padded with 0 and `NO_ANSWER`."""
    asked = wanted_NT != NO_ANSWER
    most, size = int(asked.sum(-1).max()), _asked(config)
    if most > size:
        raise ConfigError(
            f"task {config.module} asks {most} positions in one sequence and {size} in others; ask the same number in "
            "all sequences"
        )
    order = (~asked).byte().argsort(dim=-1, stable=True)[:, :size]
    answers = wanted_NT.gather(-1, order)
    return torch.where(answers != NO_ANSWER, order, 0), answers


@lru_cache(maxsize=256)
def _asked(config: ModuleTask) -> int:
    """Return Q, found from a few sequences: the number of scored positions, or T if sequences differ in it."""
    few = sample_keys(f"module/{config.module}/probe", [0], 0, _PROBED, torch.device("cpu")).flatten()
    counts = (draw(config, fork(few, torch.tensor([1])).squeeze(-1)).wanted != NO_ANSWER).sum(-1)
    if not counts.all():
        raise ConfigError(f"task {config.module} asks nothing in a sequence, because all its answers are {NO_ANSWER}")
    return int(counts[0]) if (counts == counts[0]).all() else config.length

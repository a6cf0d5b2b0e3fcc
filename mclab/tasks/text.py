"""Language modelling of bytes: a sequence is a piece of a file, and after each byte the next one is wanted.

The task stands for language modelling at the size of these models; its corpus comes with Python. Letters in shapes: N
sequences, T bytes.

See docs/equations.md#text.
"""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from mclab.config.task import TextTask
from mclab.config.task.text import corpus_hash, part
from mclab.constants import integers
from mclab.tasks.base import Batch, Role
from mclab.tasks.splits import check_split
from mclab.tasks.stream import below, fork, mix, numbers, salts, sample_keys

#: The stream of a sample from which the start of its piece is drawn.
_PLACE = 1


def batch(
    config: TextTask, seeds: Sequence[int], split: str, start: int, count: int, device: torch.device | str
) -> Batch:
    """Return samples `start` to `start + count - 1` of `split` for each seed: R = len(seeds), B = count, Q = T.

    A sample begins at a random byte of the split's part of the corpus, all equally likely. Raises `ValueError` for an
    unknown split, an empty range, and a corpus whose hash differs from that in the config.
    """
    check_split(split)
    samples = sample_keys(f"text/{split}", seeds, start, count, torch.device(device)).flatten()
    text = _text(config.corpus, config.sha256, split, samples.device)
    begin = below(fork(samples, integers((_PLACE,), samples.device)).squeeze(-1), 1, len(text) - config.length)
    places = begin + numbers(config.length + 1, torch.int64, samples.device)
    piece = text[places].to(torch.int64)
    found = mix(piece + salts(config.length + 1, samples.device)).sum(-1)
    positions = numbers(config.length, torch.int64, samples.device).repeat(len(samples), 1)
    tensors = (piece[:, :-1].contiguous(), positions, piece[:, 1:].contiguous(), torch.zeros_like(samples), found)
    return Batch._make(tensor.reshape(len(seeds), count, *tensor.shape[1:]) for tensor in tensors)


def roles(config: TextTask, batch: Batch) -> Tensor:
    """Return [R, B, T] int64: `Role.ANSWER` for every byte, since each byte is wanted after the one before it."""
    return torch.full_like(batch.tokens, int(Role.ANSWER))


def token_name(config: TextTask, token: int) -> str:
    r"""Return the name of a byte: letters and signs of ASCII unchanged, other bytes as `\x0a`."""
    return chr(token) if 33 <= token <= 126 else f"\\x{token:02x}"


@lru_cache(maxsize=8)
def _text(corpus: str | None, sha256: str, split: str, device: torch.device) -> Tensor:
    """Return [M] uint8: the part of the corpus that belongs to `split`. It is made once and shared: do not write to it.

    Raises `ValueError` if the corpus does not have the hash `sha256`.
    """
    if (found := corpus_hash(corpus)) != sha256:
        where = f"corpus {corpus}" if corpus else "this Python's standard library"
        raise ValueError(f"sha256: {where} has the hash {found[:12]}…, but the run was planned with {sha256[:12]}…")
    return torch.frombuffer(bytearray(part(corpus, split)), dtype=torch.uint8).to(device)

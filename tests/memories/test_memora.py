"""Memora in the caching layer: over a long sequence, at the largest steps, with large values."""

import pytest

from mclab.config.model import MemoryMixer
from tests.layers import largest_over_a_long_sequence
from tests.registries import words


@pytest.mark.parametrize("max_lr", [1.0, 1000.0])
@pytest.mark.parametrize("init", words("init"))
def test_a_long_sequence_overflows_nothing(init, max_lr):
    """A row of W sums up to at most K, however long the steps."""
    mixer = MemoryMixer(memory="memora", init=init, segment=512, aggregate="grm", max_lr=max_lr)
    assert largest_over_a_long_sequence(mixer) <= 8

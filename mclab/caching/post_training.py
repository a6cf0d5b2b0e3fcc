"""Caching after training: a model that was trained without a cache is run with one (docs/equations.md#after-training).

After every `segment` tokens a state is kept, while the online memory is written further. A token reads the unweighted
average over the last `window` kept states and the online one. Nothing is learned.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from mclab.caching.layer import AfterTraining, CachingLayer

__all__ = ["AfterTraining", "post_training"]


@contextmanager
def post_training(model: nn.Module, after: AfterTraining) -> Iterator[None]:
    """Within the block, every caching layer of `model`, which was trained with `aggregate: none`, reads a cache."""
    layers = [module for module in model.modules() if isinstance(module, CachingLayer)]
    assert all(layer.mixer.aggregate == "none" for layer in layers)
    try:
        for layer in layers:
            layer.post_training = after
        yield
    finally:
        for layer in layers:
            layer.post_training = None

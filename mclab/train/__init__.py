"""Replicas, optimiser, loop and evaluation: configs in, outcomes out, nothing written."""

from mclab.train.loop import train_pack

__all__ = ["train_pack"]

"""Log-linear attention: the past in buckets of doubling size, each read with a weight of its own.

See docs/equations.md#log-linear-attention.
"""

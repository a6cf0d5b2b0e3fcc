"""Log-linear attention: the past in buckets of doubling size, each read with a weight of its own.

`recurrent` is the definition, token by token; `chunkwise` has the levels and the chunk form.

See docs/equations.md#log-linear-attention.
"""

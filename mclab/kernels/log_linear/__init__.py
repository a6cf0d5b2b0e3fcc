"""Log-linear attention puts the past into buckets of doubling size and reads each bucket with a separate weight.

`recurrent` is the definition, token by token; `chunkwise` has the levels and the chunk form.

See docs/equations.md#log-linear-attention.
"""

"""Memora: a matrix whose rows are differences of probabilities, kept as logits (docs/equations.md#memora).

`recurrent` is the definition, token by token; `chunkwise` writes and reads a sequence in chunks.
"""

"""Memora: a matrix whose rows are differences of probabilities, kept as logits (docs/equations.md#memora)."""

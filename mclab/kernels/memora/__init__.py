"""Memora: a matrix whose rows are differences of probabilities, kept as logits (EQUATIONS 2; arXiv 2504.13173)."""

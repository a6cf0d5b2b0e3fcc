"""Frozen, strict models of a run: keys, defaults, cross-field rules, run id. Never imports torch."""

"""Memories that are stacks of fast-weight matrices, written by rank-1 updates (docs/equations.md#chunk-form)."""

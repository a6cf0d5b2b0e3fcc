"""Memories that are stacks of fast-weight matrices, written by rank-1 updates (EQUATIONS 2)."""

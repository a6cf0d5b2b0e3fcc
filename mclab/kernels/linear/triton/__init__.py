"""Flash-GRM: scores, softmax over segments and read of the cached linear memory as one attention-like kernel.

See mclab/kernels/README.md and docs/equations.md#linear-memory-without-its-states.
"""

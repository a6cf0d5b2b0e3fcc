"""Flash-GRM: scores, softmax over segments and read of the cached linear memory as one attention-like kernel.

Flash-SSC: the read alone, of the segments that each token chose.

See mclab/kernels/README.md and docs/equations.md#linear-memory-without-its-states.
"""

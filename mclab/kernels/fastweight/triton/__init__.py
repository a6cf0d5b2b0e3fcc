"""The chunk loop of a memory of depth 2 as one kernel forward and one backward. See mclab/kernels/README.md."""

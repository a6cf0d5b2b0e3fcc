"""The chunk loop of a memory of depth 2, and Titans' rates, as kernels. See mclab/kernels/README.md."""

"""The (gated) delta rule as kernels, three forward and three backward. See mclab/kernels/README.md."""

"""The delta rule and the gated one, chunk after chunk in one kernel. See mclab/kernels/README.md."""

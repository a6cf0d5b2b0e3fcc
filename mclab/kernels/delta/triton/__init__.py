"""The (gated) delta rule as one kernel that goes through a sequence chunk by chunk. See mclab/kernels/README.md."""

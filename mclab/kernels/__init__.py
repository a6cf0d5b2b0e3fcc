"""Plain tensor functions: a literal recurrence and a fast chunkwise form of each update rule.

- One folder per family: `linear`, `delta`, `memora`, `fastweight` (rules that descend a loss, and code for states of
  chunks that all share), `log_linear`. In each, `recurrent` is the definition, `chunkwise` torch's fast form, `triton`
  GPU kernels.
- Single operations with the gradient by hand: `conv`, `norm`, `scores` (context scores), `rwkv7` (the decays and step
  sizes of RWKV-7), `sparse_read` (reads of the memories that each token chose).
- `dispatch` alone decides which form computes what. `selfcheck`, `launch` and `launch_mode` serve the Triton kernels.
"""

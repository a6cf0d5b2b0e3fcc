"""Plain tensor functions: a literal recurrence and a fast chunkwise form of each update rule.

- A folder a family: `linear`, `delta`, `memora`, `fastweight` (rules that descend a loss, and chunked states in
  general), `log_linear`. In each `recurrent` is the definition, `chunkwise` torch's fast form, `triton` GPU kernels.
- Single operations with the gradient by hand: `conv`, `norm`, `scores` (context scores), `rwkv7` (its rates),
  `sparse_read` (reads of the memories that each token chose).
- Which form computes what: `dispatch` alone; `selfcheck`, `launch`, `launch_mode` belong to Triton's.
"""

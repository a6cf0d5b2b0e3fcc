"""Matrices that a token's key takes from before its value is added, S_t = S_{t-1} (diag(w_t) - a_t b_t^T) + v_t k_t^T.

- `recurrent`: token by token, the definition;
- `chunkwise`: a sequence written and read in chunks, for one decay a token (the delta rules) or a channel (RWKV-7);
- `wy`: the WY form of one chunk's writes, its triangular system included;
- `state_passing`: the states between chunks.

See docs/equations.md#erasing-in-chunks.
"""

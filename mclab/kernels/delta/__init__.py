"""The generalised delta rule: a token's key erases from the matrix before the token's value is added.

S_t = S_{t-1} (diag(w_t) - a_t b_t^T) + v_t k_t^T.

- `recurrent`: token by token, the definition;
- `chunkwise`: a sequence written and read in chunks, with one decay per token (the delta rules) or channel (RWKV-7);
- `wy`: the WY form of one chunk's writes, its triangular system included;
- `state_passing`: the states between chunks.

See docs/equations.md#erasing-in-chunks.
"""

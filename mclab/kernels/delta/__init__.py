"""Matrices that a token's key takes from before its value is added, S_t = S_{t-1} (diag(w_t) - a_t b_t^T) + v_t k_t^T.

A literal recurrence; chunk forms for one decay a token (the delta rules) and for one a channel (RWKV-7); and what a
chunk does as a whole to a state and to its tokens' queries (`effective`).

See docs/equations.md#erasing-in-chunks.
"""

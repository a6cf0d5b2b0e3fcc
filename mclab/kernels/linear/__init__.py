"""Reads of the linear memory M_t = M_{t-1} + v_t k_t^T.

- `recurrent`: token by token, the definition;
- `chunkwise`: the weighted read in two exact forms without a loop over tokens;
- `flash_grm`: gate and read as one Triton kernel (`triton`); a `gate.Gate` holds the inputs of the gate;
- `flash_ssc`: the read of chosen segments with given weights, as one Triton kernel.

See docs/equations.md#linear, docs/equations.md#linear-memory-without-its-states.
"""

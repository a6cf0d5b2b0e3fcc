"""Memories that are stacks of fast-weight matrices, written by rank-1 updates (docs/equations.md#chunk-form).

recurrent.py    the definition, token by token; net.py: the function that a memory of depth d computes
chunkwise.py    the chunk form; writing.py: its two ways to write a sequence; ranges.py: segments that restart
fused.py        descends and reads in one pass, for Titans and DLA; looped.py: loop over chunks; descent.py: one step
rates.py        the coefficients of the chunk form; steps.py: in the form that reads and transitions need
states.py       matrices from chunk to chunk; reads.py: every token's own weights; online.py: reads of one layer
triton/         kernels of depth 2
"""

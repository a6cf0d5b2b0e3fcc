"""Reads of the linear memory M_t = M_{t-1} + v_t k_t^T: a literal recurrence and two fast forms.

See docs/equations.md#linear, docs/equations.md#linear-memory-without-its-states.
"""

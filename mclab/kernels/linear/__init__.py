"""Reads of the linear memory M_t = M_{t-1} + v_t k_t^T (EQUATIONS 2): a literal recurrence and two fast forms."""

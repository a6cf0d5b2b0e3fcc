"""How the memories that a token sees become one output (docs/equations.md#aggregation).

Shapes as in caching/gate.py.
"""

from collections.abc import Callable

from torch import Tensor

from mclab.caching.gate_output import GateOutput
from mclab.caching.route import ROUTES
from mclab.memories.base import Written


def residual(written: Written, q_GTK: Tensor, view: GateOutput) -> Tensor:
    """y_t = M_t^(s)(q_t) + sum_{i < s} M^(i)(q_t)."""
    return written.read(q_GTK, None)


def grm(written: Written, q_GTK: Tensor, view: GateOutput) -> Tensor:
    """Gated residual memory: y_t = gamma_t^(s) M_t^(s)(q_t) + sum_{i < s} gamma_t^(i) M^(i)(q_t)."""
    return written.read(q_GTK, view.weights())


def soup(written: Written, q_GTK: Tensor, view: GateOutput) -> Tensor:
    """Memory soup: mix the weight matrices with gamma, then read the mixed memory once."""
    return written.read_mixed(q_GTK, view.weights())


def ssc(written: Written, q_GTK: Tensor, view: GateOutput) -> Tensor:
    """Sparse selective caching: grm over the k kept memories of highest context score, and the online one."""
    return ROUTES[view.route](written, q_GTK, view)


AGGREGATES: dict[str, Callable[[Written, Tensor, GateOutput], Tensor]] = {
    "none": residual,  # over a single segment
    "residual": residual,
    "grm": grm,
    "soup": soup,
    "ssc": ssc,
}

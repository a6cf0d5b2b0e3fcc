"""Combine the memories that a token sees into one output: residual, grm, soup, ssc (docs/equations.md#aggregation).

Each function takes a written sequence, queries [G, T, K] and the gate's output (gate_output.py), and returns [G, T, V].
The arithmetic is in `Written.read` and `Written.read_mixed` of each memory: memories/linear.py, vector.py and
fast_weights.py. Shapes as in caching/gate.py.
"""

from collections.abc import Callable

from torch import Tensor

from mclab.caching.gate_output import GateOutput
from mclab.caching.route import ROUTES
from mclab.memories.base import Written


def residual(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Return y_t = M_t^(s)(q_t) + sum_{i < s} M^(i)(q_t), where s is t's segment (MC eq. 7)."""
    return written.read(q_GTK, None)


def grm(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Gated residual memory: return y_t = gamma_t^(s) M_t^(s)(q_t) + sum_{i < s} gamma_t^(i) M^(i)(q_t) (MC eq. 9)."""
    return written.read(q_GTK, gated.weights())


def soup(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Memory soup: mix the weight matrices with gamma, then read the mixed memory once (MC eqs. 14, 15)."""
    return written.read_mixed(q_GTK, gated.weights())


def ssc(written: Written, q_GTK: Tensor, gated: GateOutput) -> Tensor:
    """Sparse selective caching: grm over the online memory and the k kept ones of highest score (MC eq. 17)."""
    return ROUTES[gated.route](written, q_GTK, gated)


#: Aggregations by their name under `model.mixer.aggregate`.
AGGREGATES: dict[str, Callable[[Written, Tensor, GateOutput], Tensor]] = {
    "none": residual,  # there is only one segment
    "residual": residual,
    "grm": grm,
    "soup": soup,
    "ssc": ssc,
}

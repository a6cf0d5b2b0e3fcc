"""What a chunk of the (gated) delta rule does as a whole: a linear map from the state carried in and its values.

y = Q~ S_0^T + P V and S_C = S_0 T + V^T K~, with effective queries Q~, lower triangular P, transition T and effective
keys K~ that depend on neither values nor states. Leading axes are free. Shapes: C tokens, K key width, V value width.
"""

from typing import NamedTuple

from torch import Tensor

from mclab.kernels.delta.triangular import inverse
from mclab.kernels.fastweight.rates import Coefficients
from mclab.tables import identity


class Chunk(NamedTuple):
    """`queries` Q~ [..., C, K]: a state carried in, S_0, adds S_0 q~_t to token t's output. `scores` P [..., C, C]: the
    chunk's own values add P V. `transition` T [..., K, K]: the chunk leaves S_0 T of the state. `keys` K~ [..., C, K]:
    from zero it writes V^T K~."""

    queries: Tensor
    scores: Tensor
    transition: Tensor
    keys: Tensor


def chunk(q: Tensor, k: Tensor, coefficients: Coefficients) -> Chunk:
    """q and k [..., C, K], `coefficients` of Rates(beta, log alpha), where log alpha may be None.

    With c_tj = L_tj beta_j, L and A the products of decays (chunkwise.py), U = (I + tril(c * K K^T, -1))^-1 and
    P = (c * Q K^T) U: K~ = U^T (c_C K), Q~ = A Q - P A K, T = A_C I - (A K)^T K~.
    """
    writes, decay = coefficients.writes, coefficients.decay
    solved = inverse((k @ k.mT) * writes)
    scores = ((q @ k.mT) * writes) @ solved
    keys = solved.mT @ (k * writes[..., -1, :, None])
    kept = identity(k.shape[-1], k.dtype, k.device)
    if decay is not None:
        q, k, kept = (
            x * a for x, a in ((q, decay[..., None]), (k, decay[..., None]), (kept, decay[..., -1, None, None]))
        )
    return Chunk(q - scores @ k, scores, kept - k.mT @ keys, keys)

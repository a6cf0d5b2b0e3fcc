"""One block: x + mixer(norm(x)), then x + mlp(norm(x))."""

from torch import Tensor, nn

from mclab.config.model import Mixer, ModelConfig
from mclab.models.mixers import MIXERS
from mclab.replicas.layers import RMSNorm, SwiGLU


class Block(nn.Module):
    """A pre-norm residual block. The MLP handles each token alone, so it can run on selected positions only.

    `mixer` has the keys of this layer: `model.mixer`, or those that `model.pattern` gives instead.
    """

    def __init__(self, replicas: int, model: ModelConfig, mixer: Mixer, length: int, gain: float) -> None:
        super().__init__()
        self.mixer_norm = RMSNorm(replicas, model.dim)
        self.mixer = MIXERS[mixer.name](replicas, model, mixer, length, gain)
        self.mlp_norm = RMSNorm(replicas, model.dim) if model.mlp else None
        self.mlp = SwiGLU(replicas, model.dim, model.mlp, gain) if model.mlp else None

    def mix(self, x_RBTD: Tensor) -> Tensor:
        """Return x + mixer(norm(x)), the half of the block that moves information between tokens."""
        mixed: Tensor = x_RBTD + self.mixer(self.mixer_norm(x_RBTD))
        return mixed

    def feed_forward(self, x_RBTD: Tensor) -> Tensor:
        """Return x + mlp(norm(x)), the half of the block that handles each token alone; the identity if `mlp: 0`."""
        if self.mlp is None or self.mlp_norm is None:
            return x_RBTD
        y_RBTD: Tensor = x_RBTD + self.mlp(self.mlp_norm(x_RBTD))
        return y_RBTD

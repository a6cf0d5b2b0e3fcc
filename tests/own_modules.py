"""A file of modules as a user keeps it in the directory that mclab is called from."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mclab.config.parse import parse_run
from mclab.config.run import RunConfig

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\n"

#: Causal mixers that hold all that a module may hold.
GOOD = '''
class Mean(nn.Module):
    """A running mean with a learned decay a channel, one scalar, and two constants."""

    def __init__(self, dim, decay=0.9):
        super().__init__()
        self.rate = nn.Parameter(torch.full((dim,), decay).logit())
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.fixed = nn.Parameter(torch.rand(dim), requires_grad=False)
        self.inner = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        self.register_buffer("mask", torch.rand(dim) > 0.5)

    def forward(self, x):
        age = torch.arange(x.shape[1], device=x.device)
        age = (age[:, None] - age)[..., None]
        weight = torch.where(age < 0, 0.0, self.rate.sigmoid() ** age.clamp(min=0))
        mean = torch.einsum("tsd,bsd->btd", weight / weight.sum(1, keepdim=True), x)
        return self.scale * self.inner(mean + self.fixed) * torch.where(self.mask, 1.0, -1.0).to(x)


class Gru(nn.Module):
    def __init__(self, d_model, length):
        super().__init__()
        self.gru = nn.GRU(d_model, d_model, batch_first=True)
        self.place = nn.Parameter(torch.zeros(length, d_model))

    def forward(self, x):
        return self.gru(x + F.pad(self.place, (0, 0, 0, max(0, x.shape[1] - len(self.place))))[: x.shape[1]])[0]
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it with source: it becomes the module `own_mixers` here, and nothing of it is left after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [part for part in sys.path if part])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def write(source: str, name: str = "own_mixers") -> None:
        Path(f"{name}.py").write_text(HEAD + source)

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("own_"):
            del sys.modules[name]


def run_of(mixer: str, seed: int = 0, args: Any = None, **sections: Any) -> RunConfig:
    """A small run whose mixer is `own_mixers.<mixer>`."""
    model = {"dim": 8, "mixer": {"name": "module", "module": f"own_mixers.{mixer}", "args": args or {}}}
    return parse_run(
        {
            "seed": seed,
            "task": {"vocab": 32, "length": 16, "pairs": [2, 4]},
            "train": {"steps": 20, "batch": 8, "precision": "fp64", **sections.pop("train", {})},
            "model": {**model, **sections.pop("model", {})},
            **sections,
        }
    )

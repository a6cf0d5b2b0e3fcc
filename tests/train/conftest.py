"""What tests of compiled steps need."""

import logging
from collections.abc import Iterator

import pytest
import torch

from mclab.kernels import compile_mode


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """torch's compiler logs everything that it looks at where anybody listens, and pytest does. No failure is kept."""
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "propagate", False)
    monkeypatch.setattr(compile_mode, "_failed", "")
    yield
    torch.compiler.reset()

"""Tensors and the facts about them as one safetensors file, the same bytes for the same content."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mclab.files import require_file

#: The file's one metadata key: with several, their order could differ from process to process.
_KEY = "mclab"


def to_bytes(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bytes:
    """The file's bytes. `facts` are what JSON can hold; floats come back exactly, NaN and infinities too."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return save(plain, {_KEY: json.dumps(facts)})


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors on the CPU, and the facts. Raises `ValueError` for what is no such file, `OSError` where none is."""
    require_file(path)
    with open(path, "rb"):  # a plain reason where it cannot be read
        pass
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[_KEY])
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise ValueError("is torn or no safetensors file") from error
    except KeyError as error:
        raise ValueError("is not mclab's") from error
    if not isinstance(facts, dict):
        raise ValueError("is not mclab's")
    return tensors, facts

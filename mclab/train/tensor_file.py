"""Tensors and the facts about them as one safetensors file with a checksum, the same bytes for the same content."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mclab import digest
from mclab.atomic_files import require_file

#: The file's one metadata key: with several, their order could differ from process to process.
_KEY = "mclab"
#: Written with the checksum: a file that has lost one of the two is not taken for one from before checksums.
_SIGNED = {"digest": digest.KEY}


class DamagedError(ValueError):
    """The file is torn, or holds something else than what was written."""


def to_bytes(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bytes:
    """The file's bytes. `facts` are what JSON can hold; floats come back exactly, NaN and infinities too."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    known = {**facts, **_SIGNED}
    return save(plain, {_KEY: json.dumps({**known, digest.KEY: _digest(plain, known)})})


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors on the CPU, and the facts. A file from before checksums is read as it is.

    Raises `DamagedError`, a `ValueError` for what is no such file, `OSError` where none is.
    """
    require_file(path)
    with open(path, "rb"):  # a plain reason where it cannot be read
        pass
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[_KEY])
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, json.JSONDecodeError) as error:
        raise DamagedError("is torn or no safetensors file") from error
    except KeyError as error:
        raise ValueError("is not mclab's") from error
    if not isinstance(facts, dict):
        raise ValueError("is not mclab's")
    return tensors, _checked(tensors, facts)


def _checked(tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without the checksum. Raises `DamagedError`."""
    if _SIGNED.keys().isdisjoint(facts) and digest.KEY not in facts:
        return facts
    known = {key: value for key, value in facts.items() if key != digest.KEY}
    if facts.get(digest.KEY) != _digest(tensors, known):
        raise DamagedError(digest.CHANGED)
    return {key: value for key, value in known.items() if key not in _SIGNED}


def _digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """The checksum of names, types, shapes and values of the tensors, and of the facts; the file's layout is free."""
    content = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        content.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        flat = tensor.as_strided((tensor.numel(),), (1,))  # of a tensor of one value or none any stride is contiguous
        content.update(flat.view(torch.uint8).numpy().data)
    content.update(digest.of_values(facts).encode())
    return content.hexdigest()

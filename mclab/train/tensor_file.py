"""Write tensors and facts about them as one safetensors file with a checksum. Equal content gives equal bytes."""

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

#: The only metadata key of the file, since the order of several keys could differ between processes.
_KEY = "mclab"
#: A second fact that is written with the checksum. A file that has lost one of the two is then not mistaken for a file
#: that is older than checksums.
_SIGNED = {"digest": digest.KEY}


class DamagedError(ValueError):
    """The file is incomplete, or its content is not what was written."""


def to_bytes(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of the file.

    `facts` must be JSON values; floats are restored exactly, NaN and infinities too.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    known = {**facts, **_SIGNED}
    return save(plain, {_KEY: json.dumps({**known, digest.KEY: _digest(plain, known)})})


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors, on the CPU, and the facts. A file that is older than checksums is read without a check.

    Raises `DamagedError` for a damaged file, `ValueError` for a file that is not mclab's, `OSError` if there is no
    file.
    """
    require_file(path)
    with open(path, "rb"):  # raises an error with a plain reason if the file cannot be read
        pass
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})[_KEY])
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, json.JSONDecodeError) as error:
        raise DamagedError("it is incomplete, or not a safetensors file") from error
    except KeyError as error:
        raise ValueError("it was not written by mclab") from error
    if not isinstance(facts, dict):
        raise ValueError("it was not written by mclab")
    return tensors, _checked(tensors, facts)


def _checked(tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts without the checksum. Raises `DamagedError` if the checksum is wrong."""
    if _SIGNED.keys().isdisjoint(facts) and digest.KEY not in facts:
        return facts
    known = {key: value for key, value in facts.items() if key != digest.KEY}
    if facts.get(digest.KEY) != _digest(tensors, known):
        raise DamagedError(digest.CHANGED)
    return {key: value for key, value in known.items() if key not in _SIGNED}


def _digest(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """Return the checksum of the facts and of the tensors' names, types, shapes and values. Layout has no effect."""
    content = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        content.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        flat = tensor.as_strided((tensor.numel(),), (1,))  # a tensor with at most one value may have any stride
        content.update(flat.view(torch.uint8).numpy().data)
    content.update(digest.of_values(facts).encode())
    return content.hexdigest()

"""This module computes SHA-256 checksums of content, to find out whether a file is damaged."""

import hashlib
import json
from typing import Any

#: The key under which a file holds the checksum of everything else in it.
KEY = "sha256"
#: The message for a file whose content does not match its checksum.
CHANGED = f"does not match its checksum ({KEY}): something in it has changed since it was written"


def of_bytes(data: bytes) -> str:
    """Return the SHA-256 of the bytes of a whole file, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def of_values(values: Any) -> str:
    """Return the SHA-256 of JSON values, in hexadecimal; layout and order of keys in the file make no difference."""
    return of_bytes(json.dumps(values, sort_keys=True).encode())

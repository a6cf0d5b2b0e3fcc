"""SHA-256 over content: what is read from a file is what was written, or the file is damaged."""

import hashlib
import json
from typing import Any

#: Under this key a file holds the checksum of everything else in it.
KEY = "sha256"
#: What there is to say of a file whose content is not that of its checksum.
CHANGED = f"does not match its checksum ({KEY}): something in it has changed since it was written"


def of_bytes(data: bytes) -> str:
    """Of a whole file."""
    return hashlib.sha256(data).hexdigest()


def of_values(values: Any) -> str:
    """Of what JSON holds, whatever the layout and the order of keys in which it stands in the file."""
    return of_bytes(json.dumps(values, sort_keys=True).encode())

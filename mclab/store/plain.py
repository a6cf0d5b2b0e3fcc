"""What a run folder's JSON files hold, as bytes."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_bytes(value: Any, indent: int | None = 1) -> bytes:
    """Valid JSON and a newline; NaN and infinities are null, and text that is no UTF-8 survives as an escape."""
    text = json.dumps(plain(value), indent=indent, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")


def plain(value: Any) -> Any:
    """JSON has no NaN, and provenance may hold what is no JSON at all: a version, a device, a numpy scalar."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return plain(value.item()) if hasattr(value, "item") else str(value)

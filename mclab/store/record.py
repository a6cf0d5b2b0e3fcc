"""A run and its outcome as JSON, and back: what a record holds and when it counts as damaged."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

from mclab.config.outcome import Outcome
from mclab.config.run import SCIENCE, RunConfig, Status, canonical, run_id
from mclab.config.strict import leaves
from mclab.store.figures import check_figures

Record = dict[str, Any]

#: The outcome's figures; the curve and the weights stand in files of their own.
FIGURES = tuple(field.name for field in fields(Outcome) if field.name not in ("curve", "weights"))
#: Without these a record says nothing. Others may be younger than the record and then read as null.
_NEEDED = ("run_id", "science", "seed", "config", "status", "steps", "valid", "test")


def record_of(run: RunConfig, outcome: Outcome) -> Record:
    """What is stored of a run: its config in full and canonical, and every figure of its outcome."""
    figures = {name: value for name, value in asdict(outcome).items() if name in FIGURES}
    head = {"run_id": run_id(run), "science": SCIENCE, "seed": run.seed, "config": dict(leaves(canonical(run)))}
    return {**head, **figures}


def json_bytes(value: Any, indent: int | None = 1) -> bytes:
    """Valid JSON and a newline; NaN and infinities are null, and text that is no UTF-8 survives as an escape."""
    text = json.dumps(_plain(value), indent=indent, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")


def curve_bytes(curve: tuple[dict[str, Any], ...]) -> bytes:
    """One JSON object per line."""
    return b"".join(json_bytes(look, indent=None) for look in curve)


def _plain(value: Any) -> Any:
    """JSON has no NaN, and provenance may hold what is no JSON at all: a version, a device, a numpy scalar."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _plain(value.item()) if hasattr(value, "item") else str(value)


def read_record(data: bytes, name: str) -> Record:
    """The record in `data`, that stands under the run id `name`.

    Raises `ValueError` with the reason when it is damaged: torn, no record, not the run that its name says, or with
    figures that no run can have. The config of another science version is not checked, its rules are not known here.
    """
    record = _object(data)
    missing = [key for key in _NEEDED if key not in record]
    if missing:
        raise ValueError(f"lacks {', '.join(missing)}")
    if record["run_id"] != name:
        raise ValueError(f"holds run {record['run_id']!r}")
    if record["status"] not in get_args(Status):
        raise ValueError(f"has the unknown status {record['status']!r}")
    check_figures(record)
    if record["science"] == SCIENCE:
        _check_config(record)
    return {**dict.fromkeys(FIGURES), **record}


def _object(data: bytes) -> Record:
    try:
        record = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError("is empty" if not data else "is torn or no JSON") from error
    if not isinstance(record, dict):
        raise ValueError("is no JSON object")
    return record


def _check_config(record: Record) -> None:
    try:
        found = run_id(config_of(record))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError("holds a config that is none") from error
    if found != record["run_id"] or record["seed"] != record["config"]["seed"]:
        raise ValueError(f"holds the config of run {found}")


def config_of(record: Record) -> RunConfig:
    """The run that a record's dotted keys describe. Raises `ValueError` when they describe none."""
    nested: dict[str, Any] = {}
    for path, value in record["config"].items():
        *rooms, key = path.split(".")
        inner = nested
        for room in rooms:
            inner = inner.setdefault(room, {})
        inner[key] = value
    return RunConfig.model_validate(nested)

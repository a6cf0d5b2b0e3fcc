"""Write a run and its outcome as JSON and read them back. A record or a curve that fails a check counts as damaged."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

from mclab import digest
from mclab.config.ids import SCIENCE, canonical, id_as_of, moved_defaults, run_id
from mclab.config.outcome import Outcome, Score
from mclab.config.run import RunConfig, Status
from mclab.config.stored import StoredRun, StoredScore, restored
from mclab.config.strict import leaves
from mclab.config.versions import versions
from mclab.passwords import without_passwords
from mclab.store.checks import check_figures, check_whole
from mclab.store.files import json_bytes, plain

#: The outcome's figures that are in the record. The curve and the weights have files of their own.
FIGURES = tuple(field.name for field in fields(Outcome) if field.name not in ("curve", "weights"))
#: Figures and metrics that were added later. They are left out, not written as null, if a record lacks them, so that
#: an old record is written again without a change.
_YOUNG = ("without_recall", "value_accuracy", "values_found")
#: The keys that every record must have. Other keys may be newer than the record and are then read as null.
_NEEDED = ("run_id", "science", "seed", "config", "status", "steps", "valid", "test")
#: Keys with the versions of the run's parts and of pattern names; absent if all versions are the first.
_MOVED = ("versions", "words")
#: The figures that are scores by slice.
_SPLITS = ("valid", "test")
#: The keys of two checksums: of the file with the run's curve, and of everything else in the record.
_CURVE, _OWN = f"curve_{digest.KEY}", digest.KEY


def record_of(run: RunConfig, outcome: Outcome) -> dict[str, Any]:
    """Return the record of a run: its complete canonical config and every figure of its outcome."""
    known: dict[str, Any] = {name: getattr(outcome, name) for name in FIGURES}
    for split in _SPLITS:
        known[split] = {part: _stored_score(score) for part, score in known[split].items()}
    if outcome.error is not None:
        known["error"] = without_passwords(outcome.error)
    config = canonical(run)
    known |= {"run_id": run_id(run), "science": SCIENCE, "seed": run.seed}
    known |= {"versions": versions(config), "words": moved_defaults(config.model)}
    known[_CURVE] = digest.of_bytes(curve_bytes(outcome.curve))
    return signed(as_record(StoredRun(**known, keys=dict(leaves(config)), config=config)))


def signed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with the checksum of its content as the last key."""
    content = {key: value for key, value in record.items() if key != _OWN}
    return {**content, _OWN: digest.of_values(plain(content))}


def _stored_score(score: Score) -> StoredScore:
    """Return the score as it is stored: without metrics in `_YOUNG` that are `None`."""
    known = asdict(score)
    return StoredScore({name: known[name] for name in known if known[name] is not None or name not in _YOUNG})


def as_record(stored: StoredRun) -> dict[str, Any]:
    """Return the record of a stored run: the inverse of `read_record`, with null for missing figures.

    If the run was stored without a checksum, the record has none: a new one would vouch for values that nobody has
    checked.
    """
    head = {"run_id": stored.run_id, "science": stored.science, "seed": stored.seed, "config": dict(stored.keys)}
    moved = {key: dict(value) for key in _MOVED if (value := getattr(stored, key))}
    curve, own = ({key: value} if (value := getattr(stored, key)) else {} for key in (_CURVE, _OWN))
    return {**head, **moved, **figures_of(stored), **curve, **stored.unknown, **own}


def figures_of(stored: StoredRun) -> dict[str, Any]:
    """Return all figures of a stored run as they are in its record, in the same order."""
    figures = {name: value for name in FIGURES if (value := getattr(stored, name)) is not None or name not in _YOUNG}
    scores = {split: {part: dict(score.metrics) for part, score in figures[split].items()} for split in _SPLITS}
    return {**figures, **scores}


def read_record(data: bytes, name: str) -> StoredRun:
    """Return the run that the record `data` describes. `name` is the run id under which it is stored.

    Raises `ValueError` with the reason if the record is damaged: it is incomplete, is no record, belongs to another
    run, has figures that no run can have, or does not match its checksum. If it is of another science version, its
    config need not be valid here, since the rules of that version are not known.
    """
    record = _object(data)
    missing = [key for key in _NEEDED if key not in record]
    if missing:
        raise ValueError(f"lacks these keys: {', '.join(missing)}")
    if record["run_id"] != name:
        raise ValueError(f"belongs to the run {record['run_id']!r}, not to the run that its file is named after")
    if record["status"] not in get_args(Status):
        raise ValueError(f"has the unknown status {record['status']!r}")
    check_figures(record)
    if not all(isinstance(record.get(key, {}), dict) for key in _MOVED):
        raise ValueError("has a value under `versions` or `words` that is no object")
    config = _check_config(record) if record["science"] == SCIENCE else _config_if_any(record)
    _check_sum(record)
    return _stored(record, config)


def _stored(record: dict[str, Any], config: RunConfig | None) -> StoredRun:
    """Return the checked record as a `StoredRun`. Raises `ValueError` if the science version or the seed is null."""
    for key in ("science", "seed"):
        if record[key] is None:
            raise ValueError(f"has null for {key}, which must be a whole number")
    known: dict[str, Any] = {name: record.get(name) for name in ("run_id", "science", "seed", *FIGURES)}
    for split in _SPLITS:
        known[split] = {part: StoredScore(score) for part, score in record[split].items()}
    known |= {key: record.get(key, {}) for key in _MOVED}
    known |= {key: record.get(key) for key in (_CURVE, _OWN)}
    unknown = {key: value for key, value in record.items() if key != "config" and key not in known}
    return StoredRun(**known, keys=record["config"], config=config, unknown=unknown)


def _object(data: bytes) -> dict[str, Any]:
    try:
        record = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError("is empty" if not data else "is no valid JSON (damaged or cut off)") from error
    if not isinstance(record, dict):
        raise ValueError("is no JSON object")
    return record


def _check_config(record: dict[str, Any]) -> RunConfig:
    try:
        config = restored(record["config"])
        found = id_as_of(config, record.get("versions", {}), record.get("words", {}))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError("has a config that is not valid") from error
    if found != record["run_id"] or record["seed"] != config.seed:
        raise ValueError(f"has a config that does not fit its run_id and seed: it is the config of run {found}")
    check_whole(record, config.task.slices)
    return config


def _config_if_any(record: dict[str, Any]) -> RunConfig | None:
    """Return the config of a record of another science version; `None` if it is not valid in this version.

    Raises `ValueError` only if the config is no mapping.
    """
    if not isinstance(record["config"], dict):
        raise ValueError("has a config that is not valid")
    try:
        return restored(record["config"])
    except (ValueError, TypeError, AttributeError):
        return None


def _check_sum(record: dict[str, Any]) -> None:
    """Raise `ValueError` if the record does not match its checksum.

    A record without any checksum is accepted, since it is older than checksums. A record that has only the curve's
    checksum is damaged, since the two were introduced together.
    """
    if _OWN not in record:
        if _CURVE in record:
            raise ValueError(f"has lost its checksum ({_OWN})")
        return
    if record[_OWN] != digest.of_values({key: value for key, value in record.items() if key != _OWN}):
        raise ValueError(digest.CHANGED)


def curve_bytes(curve: tuple[dict[str, Any], ...]) -> bytes:
    """Return the curve as bytes: one line of JSON for each evaluation."""
    return b"".join(json_bytes(evaluation, indent=None) for evaluation in curve)


def read_curve(data: bytes, sha256: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """Return the evaluations of a curve, and a description of what is wrong with the file, if anything.

    `sha256` is the checksum of the file. If the file does not match it, no evaluation is returned, since none can be
    trusted. If `sha256` is `None` (older records), the evaluations before the first damaged line are returned.
    """
    found: list[dict[str, Any]] = []
    if sha256 is not None and digest.of_bytes(data) != sha256:
        return found, "the curve is not the one that was stored with the run's record, so it is left out"
    try:
        for line in data.decode().splitlines():
            found.append(_evaluation(line))
    except (ValueError, RecursionError):
        return found, f"the curve is damaged after line {len(found)}; the rest is left out"
    return found, None


def _evaluation(line: str) -> dict[str, Any]:
    """Return the evaluation in a line of a curve. Raises `ValueError` for a line that no run writes."""
    evaluation = json.loads(line)
    try:
        metrics = [metric for score in (evaluation.get("valid") or {}).values() for metric in score.values()]
        whole = type(evaluation["step"]) is int and all(isinstance(metric, int | float | None) for metric in metrics)
    except (AttributeError, KeyError, TypeError):
        whole = False
    if not whole:
        raise ValueError("is no evaluation")
    return dict(evaluation)

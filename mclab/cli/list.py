"""`mclab list`: the stored runs of a folder."""

from collections.abc import Sequence
from typing import Any

from mclab.cli import options as of
from mclab.cli.output import in_columns, remark, result, result_json
from mclab.report.align import NOTHING

_DIGITS = {"valid_accuracy": 3, "test_accuracy": 3, "valid_loss": 3, "test_loss": 3, "tokens_per_s": 0, "wall_s": 1}
#: What `list` leaves to --json.
_JSON_ONLY = ("valid_loss", "test_loss", "params", "tokens_per_s")


def list_(folder: of.Folder, as_json: of.Json = False) -> None:
    """List the stored runs: status, seed, what varies, metrics.

    In a sweep's folder also the number of the trial.
    """
    from mclab.verbs.list import listing, readable
    from mclab.verbs.load import opened

    records = opened(folder, "records", say=remark)
    rows = listing(records, *readable(records, remark))
    if as_json:
        return result_json(rows)
    result(listing_text(rows))
    return remark(f"{len(rows)} runs in {folder}")


def listing_text(rows: Sequence[dict[str, Any]]) -> str:
    """One line a run; columns in which nothing stands are left out."""
    if not rows:
        return "no runs stored"
    keys = [key for key in rows[0] if key not in _JSON_ONLY and any(row[key] is not None for row in rows)]
    right = [place for place, key in enumerate(keys) if all(isinstance(row[key], int | float | None) for row in rows)]
    return in_columns([keys, *([_shown(key, row[key]) for key in keys] for row in rows)], right)


def _shown(key: str, value: Any) -> str:
    from mclab.config.keys import shown

    if value is None:
        return NOTHING
    return f"{value:,.{_DIGITS[key]}f}" if key in _DIGITS else shown(value)

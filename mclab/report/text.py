"""Write values, numbers, names and lists as text, and align columns.

Every command imports this module, so it must not import slow packages.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mclab.report.stats import Difference, Spread

#: Names that no axis can have as its column: the other columns of the frames, and `task`, which could be confused with
#: eval.task and train.task. The column of such an axis has the full path as its name.
RESERVED = frozenset({
    *("name", "n", "status", "solved", "ceiling", "diff_mean", "diff_lo", "diff_hi", "p"),
    *("without_recall", "without_recall_by", "above_without_recall", "did_not_learn", "starts", "marks"),
    *("look", "share", "verdict", "seeds_to_tell", "seeds_to_be_safe"),
    *("params", "state_fixed", "state_cached", "steps_to_99", "tokens_per_s", "wall_s"),
    *("run_id", "seed", "chosen", "steps_done", "diverged_step", "overlap", "science"),
    *("device", "device_name", "torch", "mclab", "error", "task"),
})  # fmt: skip
#: The most labels that are listed in a sentence.
MOST_LISTED = 6
#: The text of an empty field.
NOTHING = "–"
GAP = "  "
#: The most letters of an error message in a note; `mclab show` prints the whole message.
_LONGEST_REASON = 160

_PAIR = re.compile(r"\w+=")


def column_names(paths: Iterable[str]) -> dict[str, str]:
    """Return {path: column name}.

    The name is the last part of the dotted path, or the full path if two would be equal.
    """
    distinct = list(dict.fromkeys(paths))
    last = [path.rpartition(".")[2] for path in distinct]
    return {
        path: path if last.count(word) > 1 or word in RESERVED else word
        for path, word in zip(distinct, last, strict=True)
    }


def plain(value: Any) -> Any:
    """Return the element of a list that has only one, else the value itself: `pairs: [4]` is the same as `pairs: 4`."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def value_text(value: Any) -> str:
    """Return a value as the author of a grid would write it: `null`, `true`, `0.001`, `4,8,16`, `attention window=8`.

    Variants of a task (`eval.task`) are separated by semicolons: `length=128; length=256`.
    """
    value = plain(value)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, list | tuple):
        texts = list(map(value_text, value))
        return ("; " if any("=" in text for text in texts) else ",").join(texts) or "[]"
    if isinstance(value, dict):
        rest = [f"{key}={value_text(inner)}" for key, inner in value.items() if key != "name"]
        return " ".join([str(value["name"]), *rest] if "name" in value else rest)
    return str(value)


def label(values: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return the label of a cell: its value if only one key varies, else e.g. `gate=input, segment=8`."""
    if len(names) == 1 and len(values) == 1:
        return value_text(next(iter(values.values())))
    return full_label(values, names)


def full_label(values: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return the label of a cell with all keys, e.g. `gate=input, segment=8`, even if only one key varies.

    Variants of a task are in brackets.
    """
    from mclab.plan.plan import CHANGE  # imported here, because it loads the config models

    texts = []
    for path, value in values.items():
        text = value_text(value)
        bracketed = f"({text})" if _PAIR.match(text) else text
        texts.append(text if path == CHANGE else f"{names[path]}={bracketed}")
    return ", ".join(texts)


def listed(labels: Sequence[str]) -> str:
    """Return the labels as a list in words: `a`, `a and b`, `a, b and c`.

    Of more than six labels, only the number and the first three are given. If labels contain commas, semicolons
    separate them.
    """
    part = "; " if any("," in text for text in labels) else ", "
    if len(labels) > MOST_LISTED:
        return f"{len(labels)} rows ({part.join(labels[:3])}{part}…)"
    return part.join(labels[:-1]) + " and " + labels[-1] if len(labels) > 1 else labels[0]


def is_number(value: Any) -> bool:
    """Return whether the value is a number, or a list with one number. Booleans are not numbers."""
    value = plain(value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def natural(text: str) -> list[Any]:
    """Return a sort key that sorts numbers within texts by value: `pairs=4` comes before `pairs=16`."""
    return [(0, float(part), "") if part.isdigit() else (1, 0.0, part) for part in re.split(r"(\d+)", text) if part]


def seeds_text(seeds: Sequence[int]) -> str:
    """Return `0..4` for three or more consecutive seeds, else a list such as `0, 3, 7`."""
    ordered = sorted(seeds)
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}..{ordered[-1]}"
    return ", ".join(map(str, ordered))


def clip(value: float | None, least: float) -> float | None:
    """Return `value` limited to [`least`, 1]. `least` is 0 for an accuracy and -1 for a difference."""
    return None if value is None else min(1.0, max(least, value))


def mean_std(spread: "Spread") -> str:
    """Return e.g. `0.912 ± 0.034 (5)`: mean, standard deviation over the seeds, number of seeds."""
    if spread.mean is None:
        return NOTHING
    width = f" ± {spread.std:.3f}" if spread.std is not None else ""
    return f"{spread.mean:.3f}{width} ({spread.n})"


def interval(span: "Spread") -> str:
    """Return the interval of an accuracy, e.g. `[0.870, 0.954]`, clipped to [0, 1]."""
    lo, hi = clip(span.lo, 0.0), clip(span.hi, 0.0)
    return NOTHING if lo is None or hi is None else f"[{lo:.3f}, {hi:.3f}]"


def signed_interval(gap: "Difference") -> str:
    """Return the interval of a difference, e.g. `[-0.184, +0.139]`, clipped to [-1, 1]."""
    lo, hi = clip(gap.lo, -1.0), clip(gap.hi, -1.0)
    return NOTHING if lo is None or hi is None else f"[{signed(lo)}, {signed(hi)}]"


def signed(value: float) -> str:
    """Return the number with its sign and three decimals, e.g. `+0.162`; 0 is `+0.000`, never `-0.000`."""
    return f"{round(value, 3) + 0.0:+.3f}"


def p_text(p: float | None) -> str:
    """Return p with three decimals, or `<0.001`."""
    if p is None:
        return NOTHING
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def count(value: Any) -> str:
    """Return a whole number with thousands separators, e.g. `12,345`."""
    return NOTHING if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """Return seconds with one decimal, e.g. `3.2`; without decimals from 100 on."""
    return NOTHING if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def padded(texts: Sequence[str], right: bool = False, least: int = 0) -> list[str]:
    """Pad the texts of a column to the width of the widest, at least `least`; `right` aligns them right."""
    width = max([least, *map(len, texts)])
    return [text.rjust(width) if right else text.ljust(width) for text in texts]


def joined_columns(columns: Sequence[Sequence[str]]) -> str:
    """Join padded columns to lines, with two spaces between the columns."""
    return "\n".join(GAP.join(line).rstrip() for line in zip(*columns, strict=True))


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return rows as lines with padded columns; the columns whose numbers are in `right` are aligned right."""
    return joined_columns([padded(column, place in right) for place, column in enumerate(zip(*rows, strict=True))])


def reason(error: str | None) -> str:
    """Return the last line of an error in brackets, e.g. ` (out of luck)`, to follow a status; "" without an error."""
    lines = (error or "").strip().splitlines()
    return f" ({cut(lines[-1].rstrip('.'), _LONGEST_REASON)})" if lines else ""


def cut(text: str, longest: int) -> str:
    """Cut the text to at most `longest` letters; the last one is `…` if text is left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_middle(text: str, longest: int) -> str:
    """Cut the text to at most `longest` letters; `…` replaces the middle of a longer text."""
    if len(text) <= longest:
        return text
    head = longest // 2
    return f"{text[:head]}…{text[head + 1 - longest :]}"

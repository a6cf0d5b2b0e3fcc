"""How values, numbers, names and lists are written, and columns of text. Imports nothing heavy: every verb does so."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mclab.plan.plan import CHANGE

if TYPE_CHECKING:
    from mclab.report.stats import Difference, Spread

#: Columns of the frames that no varied key may take the name of, and the task itself, that eval.task and train.task
#: are no other name for; a key that would keeps its full path.
RESERVED = frozenset({
    *("name", "n", "status", "solved", "ceiling", "diff_mean", "diff_lo", "diff_hi", "p"),
    *("without_recall", "without_recall_by", "above_without_recall", "did_not_learn", "starts", "marks"),
    *("look", "share", "verdict", "seeds_to_tell", "seeds_to_be_safe"),
    *("params", "state_fixed", "state_cached", "steps_to_99", "tokens_per_s", "wall_s"),
    *("run_id", "seed", "chosen", "steps_done", "diverged_step", "overlap", "science"),
    *("device", "device_name", "torch", "mclab", "error", "task"),
})  # fmt: skip
#: More labels than this make no sentence.
MOST_LISTED = 6
#: The text of an empty cell.
NOTHING = "–"
GAP = "  "
#: Letters of an error's line among notes; `mclab show` has all of it.
_LONGEST_REASON = 160

_PAIR = re.compile(r"\w+=")


def column_names(paths: Iterable[str]) -> dict[str, str]:
    """The column of each dotted path: its last name, or the full path where two would clash."""
    distinct = list(dict.fromkeys(paths))
    last = [path.rpartition(".")[2] for path in distinct]
    return {
        path: path if last.count(word) > 1 or word in RESERVED else word
        for path, word in zip(distinct, last, strict=True)
    }


def plain(value: Any) -> Any:
    """A list of one is its one value: `pairs: [4]` and `pairs: 4` are the same task."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def value_text(value: Any) -> str:
    """A value as a grid's author would write it: `null`, `true`, `0.001`, `4,8,16`, `attention window=8`.

    Variants of a task (`eval.task`) are parted by semicolons: `length=128; length=256`.
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
    """A cell in a sentence or beside a point: the value where one key varies, `gate=input, segment=8` where more do."""
    if len(names) == 1 and len(values) == 1:
        return value_text(next(iter(values.values())))
    return full_label(values, names)


def full_label(values: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """`gate=input, segment=8`, also where one key alone varies; variants of a task in brackets."""
    texts = []
    for path, value in values.items():
        text = value_text(value)
        bracketed = f"({text})" if _PAIR.match(text) else text
        texts.append(text if path == CHANGE else f"{names[path]}={bracketed}")
    return ", ".join(texts)


def listed(labels: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; of more than six the first three and how many there are.

    Labels that hold commas themselves are parted by semicolons.
    """
    part = "; " if any("," in text for text in labels) else ", "
    if len(labels) > MOST_LISTED:
        return f"{len(labels)} rows ({part.join(labels[:3])}{part}…)"
    return part.join(labels[:-1]) + " and " + labels[-1] if len(labels) > 1 else labels[0]


def is_number(value: Any) -> bool:
    """True for 3 and 0.5, and for a list that holds one of them alone; not for `true`."""
    value = plain(value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def natural(text: str) -> list[Any]:
    """A sort key under which `pairs=4` comes before `pairs=16`."""
    return [(0, float(part), "") if part.isdigit() else (1, 0.0, part) for part in re.split(r"(\d+)", text) if part]


def seeds_text(seeds: Sequence[int]) -> str:
    """`0..4` for a run of seeds, `0, 3, 7` for others."""
    ordered = sorted(seeds)
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}..{ordered[-1]}"
    return ", ".join(map(str, ordered))


def clip(value: float | None, least: float) -> float | None:
    """A bound as it is shown: no accuracy is outside [0, 1], no difference outside [-1, 1]."""
    return None if value is None else min(1.0, max(least, value))


def mean_std(spread: "Spread") -> str:
    """`0.912 ± 0.034 (5)`: mean, standard deviation over the seeds, how many."""
    if spread.mean is None:
        return NOTHING
    width = f" ± {spread.std:.3f}" if spread.std is not None else ""
    return f"{spread.mean:.3f}{width} ({spread.n})"


def interval(span: "Spread") -> str:
    """`[0.870, 0.954]`, clipped to [0, 1]."""
    lo, hi = clip(span.lo, 0.0), clip(span.hi, 0.0)
    return NOTHING if lo is None or hi is None else f"[{lo:.3f}, {hi:.3f}]"


def signed_interval(gap: "Difference") -> str:
    """`[-0.184, +0.139]`, clipped to [-1, 1]."""
    lo, hi = clip(gap.lo, -1.0), clip(gap.hi, -1.0)
    return NOTHING if lo is None or hi is None else f"[{signed(lo)}, {signed(hi)}]"


def signed(value: float) -> str:
    """`+0.162`; what rounds to nothing is `+0.000`, never `-0.000`."""
    return f"{round(value, 3) + 0.0:+.3f}"


def p_text(p: float | None) -> str:
    """Three digits, `<0.001` below them."""
    if p is None:
        return NOTHING
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def count(value: Any) -> str:
    """`12,345`."""
    return NOTHING if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """`3.2`, and whole seconds from 100 on."""
    return NOTHING if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def padded(texts: Sequence[str], right: bool = False, least: int = 0) -> list[str]:
    """The texts of a column, each as wide as the widest and at least `least`; flush right with `right`."""
    width = max([least, *map(len, texts)])
    return [text.rjust(width) if right else text.ljust(width) for text in texts]


def joined_columns(columns: Sequence[Sequence[str]]) -> str:
    """Padded columns as lines, two spaces between them."""
    return "\n".join(GAP.join(line).rstrip() for line in zip(*columns, strict=True))


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows as lines, their columns padded; those at `right` flush right."""
    return joined_columns([padded(column, place in right) for place, column in enumerate(zip(*rows, strict=True))])


def reason(error: str | None) -> str:
    """The last line of an error behind the status that it led to: ` (out of luck)`; empty where there is none."""
    lines = (error or "").strip().splitlines()
    return f" ({cut(lines[-1].rstrip('.'), _LONGEST_REASON)})" if lines else ""


def cut(text: str, longest: int) -> str:
    """The text in at most so many letters; the last is `…` where some are left out."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_middle(text: str, longest: int) -> str:
    """The text in at most so many letters, its middle left out where it is longer."""
    if len(text) <= longest:
        return text
    head = longest // 2
    return f"{text[:head]}…{text[head + 1 - longest :]}"

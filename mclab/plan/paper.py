"""Read, check and store a grid's `paper` block, which holds what a publication prints about the rows.

The block changes no run; its figures are compared with the results of the runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal, get_args

from mclab.config.error import did_you_mean
from mclab.config.parse import quoted
from mclab.config.strict import Leaf
from mclab.plan.conditions import condition
from mclab.plan.source import Source

#: What a column shows about a run: shares of right answers; cross-entropy in nats, or in bits; measured training
#: tokens a second; and counted millions of multiply-adds per token of the forward pass.
Metric = Literal[
    "accuracy", "value_accuracy", "values_found", "token_accuracy", "loss", "bits", "tokens_per_s", "mmacs"
]
METRICS: tuple[Metric, ...] = get_args(Metric)
#: Metrics for which larger is better; for the others smaller is better.
RISING = frozenset({"accuracy", "value_accuracy", "values_found", "token_accuracy", "tokens_per_s"})
#: Metrics for the cost of a run. They say nothing about what it has learned, and get no verdict.
COSTS = frozenset({"tokens_per_s", "mmacs"})
Better = Literal["up", "down"]
BETTER: tuple[Better, ...] = get_args(Better)
#: A word in place of a figure that is published only in a plot. It compares the row with the rows in `against`.
Word = Literal["better", "worse", "even"]
WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Column:
    """A column of the published table: the cells and slices of the grid that it corresponds to, and the metric.

    `where` holds the values that a run's keys may have; the task's keys are those of the slice. Several cells, and
    several slices of one cell, are averaged with equal weights. `better` and `unit` are those of the published figures.
    Two rows are even if their difference is at most `margin`, in units of the metric; `None` if no margin is given.
    """

    name: str
    where: Mapping[str, tuple[Leaf, ...]]
    metric: Metric = "accuracy"
    better: Better = "up"
    unit: str = "%"
    margin: float | None = None


@dataclass(frozen=True)
class PaperRow:
    """The published figures of a row, one for each column (`None`: not published), and the rows to compare it with."""

    name: str
    figures: tuple[float | Word | None, ...]
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A published table. `rows` are the publication's rows, named like the changes of the grid."""

    source: str
    columns: tuple[Column, ...]
    rows: tuple[PaperRow, ...]


def as_dict(paper: Paper) -> dict[str, Any]:
    """Return the paper as plain data, which JSON keeps exactly."""
    return {
        "source": paper.source,
        "columns": [{**asdict(column), "where": _plain(column.where)} for column in paper.columns],
        "rows": [{"name": row.name, "figures": list(row.figures), "against": list(row.against)} for row in paper.rows],
    }


def _plain(where: Mapping[str, Sequence[Leaf]]) -> dict[str, list[Any]]:
    return {path: [list(v) if isinstance(v, tuple) else v for v in values] for path, values in where.items()}


def from_dict(data: Mapping[str, Any]) -> Paper:
    """Return the paper that `as_dict` turned into `data`, whose types must be right (see `mclab.plan.plan_json`)."""
    return Paper(
        data["source"],
        tuple(Column(**{**column, "where": _values(column["where"])}) for column in data["columns"]),
        tuple(PaperRow(row["name"], tuple(row["figures"]), tuple(row["against"])) for row in data["rows"]),
    )


def _values(where: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Leaf, ...]]:
    return {path: tuple(tuple(v) if isinstance(v, list) else v for v in values) for path, values in where.items()}


PAPER = "paper"
KEYS = ("source", "columns", "rows")
COLUMN_KEYS = ("where", "metric", "better", "unit", "margin")
ROW_KEYS = ("figures", "against")
#: The most letters of a source and of a unit, since these are printed in headings and captions.
_LONGEST = 200


def paper_from(data: Any, known: Sequence[str], source: Source) -> Paper:
    """Read the block under `paper`; `known` are the names of the grid's rows.

    Raises `ConfigError` with one line: file, line, key, and a suggestion.
    """
    block = _mapping(data, PAPER, KEYS, source)
    if lacking := [key for key in KEYS if key not in block]:
        raise source.error(
            PAPER, f"paper: the key {lacking[0]} is missing; the keys of a paper block are {', '.join(KEYS)}"
        )
    columns = tuple(_columns(block["columns"], source))
    names = [column.name for column in columns]
    rows = tuple(_rows(block["rows"], names, known, source))
    return Paper(_text(block["source"], f"{PAPER}.source", source), columns, rows)


def _columns(data: Any, source: Source) -> Iterable[Column]:
    at = f"{PAPER}.columns"
    for name, given in _named(data, at, source).items():
        here = f"{at}.{name}"
        block = _mapping(given, here, COLUMN_KEYS, source)
        metric: Metric = _word(block.get("metric", METRICS[0]), METRICS, f"{here}.metric", source)
        usual: Better = "up" if metric in RISING else "down"
        yield Column(
            str(name),
            condition(block["where"], source, f"{here}.where").allowed if "where" in block else {},
            metric,
            _word(block.get("better", usual), BETTER, f"{here}.better", source),
            _text(block.get("unit", "%"), f"{here}.unit", source),
            _margin(block.get("margin"), f"{here}.margin", source),
        )


def _rows(data: Any, columns: Sequence[str], known: Sequence[str], source: Source) -> Iterable[PaperRow]:
    at = f"{PAPER}.rows"
    blocks = _named(data, at, source)
    for name, given in blocks.items():
        here = f"{at}.{name}"
        _known_row(name, known, here, source)
        block = _mapping(given if given is not None else {}, here, ROW_KEYS, source, empty=True)
        against = tuple(_against(block.get("against"), name, list(blocks), f"{here}.against", source))
        figures = _figures(block.get("figures"), columns, f"{here}.figures", source)
        words = [figure for figure in figures if isinstance(figure, str)]
        if words and not against:
            raise source.error(
                here,
                f"{here}: the figure {words[0]} compares with another row, which is not named; name it under against",
            )
        yield PaperRow(name, figures, against)


def _known_row(name: str, known: Sequence[str], at: str, source: Source) -> None:
    if name not in known:
        hint = did_you_mean(name, known) or f"the rows of the grid are {', '.join(known)}"
        raise source.error(at, f"{at}: the grid has no such row; {hint}")


def _against(value: Any, name: str, rows: Sequence[str], at: str, source: Source) -> Iterable[str]:
    """Return the names in `against`, which is one name or a list. All must be rows of the block."""
    given = value if isinstance(value, list) else [] if value is None else [value]
    for other in given:
        if not isinstance(other, str) or other not in rows:
            hint = did_you_mean(str(other), rows) or f"the rows of the block are {', '.join(rows)}"
            raise source.error(at, f"{at}: {quoted(other)} is not a row under paper.rows; {hint}")
        if other == name:
            raise source.error(at, f"{at}: a row cannot be compared with itself")
    if twice := [other for other in given if given.count(other) > 1]:
        raise source.error(at, f"{at}: {twice[0]} is listed twice")
    return given


def _figures(value: Any, columns: Sequence[str], at: str, source: Source) -> tuple[float | Word | None, ...]:
    """Return one figure for each column, `None` if it is not published.

    `value` is a list in the columns' order, a mapping from columns to figures, or one of `WORDS` for all columns.
    """
    if value is None or (isinstance(value, str) and value in WORDS):
        return (value,) * len(columns)
    if isinstance(value, list):
        if len(value) != len(columns):
            raise source.error(
                at,
                f"{at}: there are {len(value)} figures for {len(columns)} columns; write null where no figure is "
                "published",
            )
        return tuple(_figure(each, at, source) for each in value)
    if not isinstance(value, Mapping):
        raise source.error(
            at, f"{at}: must be a list of figures or a mapping of columns to figures, got {quoted(value)}"
        )
    for name in value:
        if name not in columns:
            hint = did_you_mean(str(name), columns) or f"the columns of the block are {', '.join(columns)}"
            raise source.error(f"{at}.{name}", f"{at}: {name}: there is no such column under paper.columns; {hint}")
    return tuple(_figure(value.get(name), f"{at}.{name}", source) for name in columns)


def _figure(value: Any, at: str, source: Source) -> float | Word | None:
    if value is None or (isinstance(value, str) and value in WORDS):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        words = ", ".join(WORDS)
        raise source.error(at, f"{at}: must be a number, null (not published) or one of {words}, got {quoted(value)}")
    return float(value)


def _margin(value: Any, at: str, source: Source) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise source.error(at, f"{at}: must be a number above 0, in units of the metric, got {quoted(value)}")
    return float(value)


def _word(value: Any, known: Sequence[Any], at: str, source: Source) -> Any:
    if value in known:
        return value
    hint = did_you_mean(str(value), known, "; ")
    raise source.error(at, f"{at}: must be one of {', '.join(known)}, got {quoted(value)}{hint}")


def _text(value: Any, at: str, source: Source) -> str:
    if isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST:
        return value.strip()
    raise source.error(at, f"{at}: must be text of at most {_LONGEST} letters, got {quoted(value)}")


def _named(data: Any, at: str, source: Source) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or not data:
        raise source.error(at, f"{at}: must be a mapping of names, got {quoted(data)}")
    return data


def _mapping(data: Any, at: str, keys: Sequence[str], source: Source, empty: bool = False) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or not (data or empty):
        raise source.error(at, f"{at}: must be a mapping with some of the keys {', '.join(keys)}, got {quoted(data)}")
    for key in data:
        if key not in keys:
            hint = did_you_mean(str(key), keys) or f"its keys are {', '.join(keys)}"
            raise source.error(f"{at}.{key}", f"{at}.{key}: unknown key; {hint}")
    return data


def paper_schema(condition: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the block; `condition` is the schema of a mapping of keys to values."""
    text = {"type": "string", "minLength": 1}
    above = {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "rows whose figures differ by less than this are even",
    }
    column = {
        "where": condition | {"description": "the runs, and the slices of their tests, that correspond to it"},
        "metric": {
            "enum": list(METRICS),
            "description": "the metric that is read there, averaged over cells and slices",
        },
        "better": {
            "enum": list(BETTER),
            "description": "which published figures are better: larger ones (up) or smaller ones (down)",
        },
        "unit": text | {"description": "unit of the published figures; default %"},
        "margin": {"anyOf": [above, {"type": "null"}]},
    }
    figure = {"anyOf": [{"type": "number"}, {"enum": list(WORDS)}, {"type": "null"}]}
    several: list[Any] = [{"type": "array", "items": figure}, {"type": "object", "additionalProperties": figure}]
    figures = [*several, {"enum": list(WORDS)}, {"type": "null"}]
    row = _closed({"figures": {"anyOf": figures}, "against": {"anyOf": [text, {"type": "array", "items": text}]}})
    names = {"type": "object", "minProperties": 1}
    inner = {
        "source": text,
        "columns": names | {"additionalProperties": _closed(column)},
        "rows": names | {"additionalProperties": {"anyOf": [row, {"type": "null"}]}},
    }
    return _closed(inner) | {"required": list(inner)}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}

"""What a publication prints of a grid's rows: the grid's `paper` block, resolved, and as `plan.json` holds it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from mclab.config.strict import Leaf

#: What a column shows of a run: shares of right answers; cross-entropy in nats, or in bits; training tokens a second,
#: as measured, and millions of multiply-adds of the forward pass a token, as counted.
Metric = Literal[
    "accuracy", "value_accuracy", "values_found", "token_accuracy", "loss", "bits", "tokens_per_s", "mmacs"
]
METRICS: tuple[Metric, ...] = get_args(Metric)
#: Metrics of which more is better; of the others less.
RISING = frozenset({"accuracy", "value_accuracy", "values_found", "token_accuracy", "tokens_per_s"})
#: Metrics that say what a run costs, and nothing about what it has learned: they get no verdict.
COSTS = frozenset({"tokens_per_s", "mmacs"})
Better = Literal["up", "down"]
BETTER: tuple[Better, ...] = get_args(Better)
#: What stands for a figure that was drawn and not printed: how the row does beside those that it is held against.
Word = Literal["better", "worse", "even"]
WORDS: tuple[Word, ...] = get_args(Word)


@dataclass(frozen=True)
class Column:
    """A column of the published table: which cells and slices of the grid stand for it, and what is read there.

    `where`: the values that the keys of a run, its task as on the slice, may have. Of several cells, and of several
    slices of one, the mean counts, each alike. `better` and `unit` are those of the published figures. `margin`: two
    rows whose difference lies within it, in units of the metric, are even; `None` where nobody has said how far.
    """

    name: str
    where: Mapping[str, tuple[Leaf, ...]]
    metric: Metric = "accuracy"
    better: Better = "up"
    unit: str = "%"
    margin: float | None = None


@dataclass(frozen=True)
class PaperRow:
    """A row's published figures, one for each column (`None`: not published), and the rows that it is held against."""

    name: str
    figures: tuple[float | Word | None, ...]
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A published table. `rows` are those that the publication has, by the names of the grid's changes."""

    source: str
    columns: tuple[Column, ...]
    rows: tuple[PaperRow, ...]


def as_dict(paper: Paper) -> dict[str, Any]:
    """Plain data, which JSON keeps exactly."""
    return {
        "source": paper.source,
        "columns": [{**asdict(column), "where": _plain(column.where)} for column in paper.columns],
        "rows": [{"name": row.name, "figures": list(row.figures), "against": list(row.against)} for row in paper.rows],
    }


def _plain(where: Mapping[str, Sequence[Leaf]]) -> dict[str, list[Any]]:
    return {path: [list(v) if isinstance(v, tuple) else v for v in values] for path, values in where.items()}


def from_dict(data: Mapping[str, Any]) -> Paper:
    """The inverse of `as_dict`, for data of the right shape (`mclab.plan.shape`)."""
    return Paper(
        data["source"],
        tuple(Column(**{**column, "where": _values(column["where"])}) for column in data["columns"]),
        tuple(PaperRow(row["name"], tuple(row["figures"]), tuple(row["against"])) for row in data["rows"]),
    )


def _values(where: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Leaf, ...]]:
    return {path: tuple(tuple(v) if isinstance(v, list) else v for v in values) for path, values in where.items()}

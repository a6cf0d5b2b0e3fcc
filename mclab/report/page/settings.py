"""Make the blocks of a page that describe the runs: keys in which rows differ, keys that they share, provenance."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mclab.config.ids import inert, written
from mclab.config.keys import shown
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun
from mclab.config.strict import leaves
from mclab.report.page.html import Block, Facts, Source, Table
from mclab.report.table.columns import Shown
from mclab.report.text import NOTHING, plain

#: The most values of one fact that are listed; further values are only counted.
_MOST_VALUES = 6
#: The first facts of a record's provenance, in the order of the page; all other facts follow.
_FIRST = ("mclab", "git", "torch", "python", "device", "device_name", "threads", "pack", "kernels", "step", "compiled")


def settings(runs: Mapping[str, RunConfig]) -> list[Block]:
    """Return a table of the keys in which the rows `runs` (by name) differ, then the keys that all rows share.

    The shared keys that the grid sets are listed; those at their defaults are folded.
    """
    every = {name: _settled(run) for name, run in runs.items()}
    paths = list(dict.fromkeys(path for known in every.values() for path in known))
    moved = [path for path in paths if len({known.get(path) for known in every.values()}) > 1]
    own = {path for run in runs.values() for path in written(run)}
    shared = {path: next(iter(every.values()))[path] for path in paths if path not in moved} if every else {}
    columns = [Shown("row", tuple(every), right=False)]
    columns += [Shown(path, tuple(known.get(path, NOTHING) for known in every.values()), right=False) for path in moved]
    blocks: list[Block] = [Table("What the rows differ in", columns)] if moved else []
    blocks.append(Facts([(path, value) for path, value in shared.items() if path in own]))
    rest = [(path, value) for path, value in shared.items() if path not in own]
    return [*blocks, Facts(rest, fold=f"{len(rest)} further keys, shared by all rows and at their defaults")]


def _settled(run: RunConfig) -> dict[str, str]:
    """Return the values, as text, of the keys that have an effect in this run, except the seed."""
    dead = inert(run)
    return {path: shown(plain(value)) for path, value in leaves(run) if path not in dead and path != "seed"}


def provenance(records: Sequence[StoredRun], source: Source, seeds: str) -> Facts:
    """Return the provenance of the runs. If runs differ in a fact, each value is shown with its number of runs."""
    return Facts(list(_facts(records, source, seeds)))


def _facts(records: Sequence[StoredRun], source: Source, seeds: str) -> Iterator[tuple[str, str]]:
    yield "runs", _counted([record.status for record in records])
    yield "seeds", seeds
    if source.dates:
        first, last = source.dates
        yield "records written", first if first == last else f"{first} to {last}"
    known = [record.overlap for record in records if record.overlap is not None]
    yield "overlap of test with train", f"{max(known):.2%} at most" if known else "not measured"
    if seconds := sum(record.wall_s or 0.0 for record in records):
        yield "training time, summed", f"{seconds:,.0f} s"
    yield "science version", _counted([str(record.science) for record in records])
    facts = [dict(record.provenance or {}) for record in records]
    names = dict.fromkeys([*_FIRST, *(name for each in facts for name in each)])
    for name in names:
        texts = [str(each[name]) if each.get(name) is not None else "not known" for each in facts]
        if any(text != "not known" for text in texts):
            yield name.replace("_", " "), _counted(texts)


def _counted(texts: Sequence[str]) -> str:
    """Return the different texts with their counts, e.g. `cpu (20), cuda (1)`. A text that all runs share has no count.

    A status such as `done` always has its count.
    """
    counts = Counter(texts)
    if len(counts) == 1:
        return f"{texts[0]} ({len(texts)})" if texts[0] in ("done", "diverged", "pruned") else texts[0]
    told = ", ".join(f"{text} ({n})" for text, n in counts.most_common(_MOST_VALUES))
    return told + f" and {len(counts) - _MOST_VALUES} more" * (len(counts) > _MOST_VALUES)

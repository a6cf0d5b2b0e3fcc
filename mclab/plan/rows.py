"""Read the rows of a grid: `grid`, `zip` and `changes` are multiplied, `runs` are taken as listed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from mclab.config.keys import sections, shown
from mclab.config.parse import quoted
from mclab.plan.dotted import Setting, normalised, pairs, parents_first, setting, settings
from mclab.plan.plan import CHANGE
from mclab.plan.source import Source

#: The most cells of a grid. A larger product is probably a mistake, unreadable, and could fill the memory.
MOST_CELLS = 20_000
#: The most runs of a plan, counting every candidate of every cell on every seed.
MOST_RUNS = 200_000


@dataclass(frozen=True)
class Draft:
    """A cell before it is checked: its settings, where whole mappings come first.

    `name` is the author's name for it, `None` if the cell is named after its values. `change` is the name of the
    change, if changes are crossed with other axes.
    """

    settings: tuple[Setting, ...]
    name: str | None = None
    change: str | None = None


@dataclass(frozen=True)
class Rows:
    """The drafts of all cells. `axes` are the varied paths in the author's order; `named` says that rows have names."""

    axes: tuple[str, ...]
    drafts: tuple[Draft, ...]
    named: bool = False
    notes: tuple[str, ...] = ()


Axis = tuple[tuple[Setting, ...], ...]


def rows(data: Mapping[str, Any], source: Source) -> Rows:
    """Return the rows that the grid's `grid`, `zip`, `changes` or `runs` describe; one row if it has none of these."""
    given = [word for word in ("runs", "changes", "grid", "zip") if word in data]
    if len(given) > 1 and "runs" in given:
        raise source.error(given[1], f"runs and {given[1]} cannot be combined; keep one")
    for word in given:
        if not data[word]:
            raise source.error(word, f"{word}: this block is empty; give it something to vary, or leave it out")
    if given == ["changes"]:
        return _changes(data["changes"], source)
    if "changes" in given:
        return _crossed(_changes(data["changes"], source), _product(data, source), source)
    if "runs" in given:
        return _runs(data["runs"], source)
    return _product(data, source)


def _changes(data: Any, source: Source) -> Rows:
    if not isinstance(data, Mapping):
        raise source.error("changes", f"changes: must be a mapping of row names to changes, got {quoted(data)}")
    refuse_many("changes", len(data), "cells", source)
    drafts = tuple(Draft(settings(change, source, f"changes.{name}"), str(name)) for name, change in data.items())
    return Rows(_paths(drafts), drafts, named=True)


def _crossed(changes: Rows, product: Rows, source: Source) -> Rows:
    """Return the rows of the product, each with every change, where the changes of one row follow each other.

    Raises `ConfigError` for a key that both vary.
    """
    varied = {path for draft in product.drafts for item in draft.settings for path in item.touches}
    for item in (item for draft in changes.drafts for item in draft.settings):
        if both := [path for path in item.touches if path in varied]:
            raise source.error("changes", f"changes: {both[0]}: grid or zip varies this key as well; keep one")
    refuse_many("grid", len(changes.drafts) * len(product.drafts), "cells with the changes", source)
    drafts = tuple(
        Draft(parents_first((*change.settings, *cell.settings)), change=change.name)
        for cell in product.drafts
        for change in changes.drafts
    )
    return Rows((CHANGE, *product.axes), drafts, notes=product.notes)


def _runs(data: Any, source: Source) -> Rows:
    if not isinstance(data, list):
        raise source.error("runs", f"runs: must be a list of mappings, got {quoted(data)}")
    refuse_many("runs", len(data), "cells", source)
    drafts = tuple(Draft(settings(row, source, f"runs.{number}")) for number, row in enumerate(data))
    return Rows(_paths(drafts), drafts)


def _paths(drafts: tuple[Draft, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.path for draft in drafts for item in draft.settings))


def _product(data: Mapping[str, Any], source: Source) -> Rows:
    notes: list[str] = []
    alone = dict(axes(data.get("grid", {}), source, "grid", notes))
    together = dict(axes(data.get("zip", {}), source, "zip", notes))
    if both := [path for path in alone if path in together]:
        raise source.error(f"zip.{both[0]}", f"zip: {both[0]}: grid varies this key as well; keep one")
    bundles: list[Axis] = [tuple((value,) for value in values) for values in alone.values()]
    if together:
        bundles.append(_zipped(together, source, notes))
    refuse_many("grid", prod(map(len, bundles)), "cells", source)
    drafts = tuple(Draft(parents_first(part for parts in combo for part in parts)) for combo in product(*bundles))
    return Rows((*alone, *together), drafts, notes=tuple(notes))


def refuse_many(at: str, count: int, what: str, source: Source, most: int = MOST_CELLS) -> None:
    """Raise `ConfigError` if `count` is above `most`."""
    if count > most:
        raise source.error(at, f"{at}: there would be {count} {what}, but at most {most} are allowed")


def axes(data: Any, source: Source, at: str, notes: list[str]) -> Iterator[tuple[str, tuple[Setting, ...]]]:
    """Yield path and settings of every axis under `at`, nested or dotted. Equal values are merged, except for `zip`.

    What was merged is added to `notes`. Raises `ConfigError` for an unknown key, and for an axis that is not a list
    with at least one value.
    """
    if not isinstance(data, Mapping):
        raise source.error(at, f"{at}: must be a mapping of keys to lists, got {quoted(data)}")
    for path, values in pairs(data, sections(), "", f"{source.at(at)}: {at}"):
        here = f"{at}.{path}"
        if not isinstance(values, list):
            setting(path, values, source.at(here), at)
            raise source.error(here, f"{at}: {path}: must be a list of values, got {quoted(values)}; write [...]")
        if not values:
            raise source.error(here, f"{at}: {path}: must have at least one value, got []")
        refuse_many(here, len(values), "values", source)
        items = [setting(path, value, source.at(f"{here}.{n}"), at) for n, value in enumerate(values)]
        yield path, tuple(items) if at == "zip" else tuple(_distinct(items, at, notes))


def identity(item: Setting) -> tuple[tuple[str, str], ...]:
    """Return a value that is equal for settings that give the same run, however they are written."""
    return tuple(sorted((path, repr(normalised(path, value))) for path, value in item.flat.items()))


def _distinct(items: list[Setting], at: str, notes: list[str]) -> Iterator[Setting]:
    seen: dict[Any, Setting] = {}
    for item in items:
        first = seen.setdefault(identity(item), item)
        if first is item:
            yield item
        else:
            same = "" if shown(first.value) == shown(item.value) else f" (once as {shown(first.value)})"
            notes.append(f"{at}: {item.path} lists {shown(item.value)} twice{same}; it runs once")


def _zipped(columns: Mapping[str, tuple[Setting, ...]], source: Source, notes: list[str]) -> Axis:
    lengths = {path: len(values) for path, values in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{path} has {count}" for path, count in lengths.items())
        raise source.error("zip", f"zip: the lists must have equal lengths, but {counts}")
    seen: dict[Any, tuple[Setting, ...]] = {}
    for row in zip(*columns.values(), strict=True):
        key = tuple(map(identity, row))
        if key in seen:
            notes.append(
                f"zip: lists {', '.join(f'{item.path} {shown(item.value)}' for item in row)} twice; it runs once"
            )
        seen.setdefault(key, row)
    return tuple(seen.values())

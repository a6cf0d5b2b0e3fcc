"""`mclab keys`: list all config keys or those that contain a word, and print JSON schemas for editors."""

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from mclab.cli import options as of
from mclab.cli.output import result, result_json, width

if TYPE_CHECKING:
    from mclab.config.keys import Key

#: The columns of the output if the terminal's width is unknown, and the smallest number that is used.
_COLUMNS, _FEWEST = 80, 40


def keys(
    word: Annotated[
        str | None,
        typer.Argument(
            metavar="WORD",
            help="Show only keys with this text in their name or meaning, e.g. gate. "
            "With --schema: grid or space. [default: every key; grid]",
        ),
    ] = None,
    as_json: of.Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print a JSON schema for editors: of grids, or with `space` of spaces.")
    ] = False,
) -> None:
    """List every key: type, default, meaning.

    With WORD, only the keys that have it in their name or meaning.
    """
    from mclab.config.keys import all_keys
    from mclab.verbs.keys import matching

    if schema:
        from mclab.plan.schema import grid_schema, space_schema

        schemas = {"grid": grid_schema, "space": space_schema}
        return result_json(schemas[of.one_of("--schema", word or "grid", tuple(schemas))]())
    found = all_keys() if word is None else matching(word)
    if as_json:
        return result_json([key.as_json() for key in found])
    columns = max(_FEWEST, width(_COLUMNS))
    return result("\n".join(line for key in found for line in _lines(key, columns)))


def _lines(key: "Key", columns: int) -> Iterator[str]:
    """Yield the wrapped lines for one key: name, type and default, then the meaning below, indented."""
    from mclab.config.keys import shown

    owner = f" (of {key.of})" if key.of else ""
    head = f"{key.path}{owner}: {key.type}; default {shown(key.default)}"
    yield from wrap(head, columns, subsequent_indent="        ", break_on_hyphens=False)
    yield from wrap(key.meaning, columns, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)

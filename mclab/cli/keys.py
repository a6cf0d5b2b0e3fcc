"""`mclab keys`: every key, and JSON schemas for editors."""

from typing import Annotated

import typer

from mclab.cli import options as of
from mclab.cli.output import in_columns, result, result_json


def keys(
    files: Annotated[
        str | None, typer.Argument(metavar="FILES", help="With --schema: grid or space. [default: grid]")
    ] = None,
    as_json: of.Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print a JSON schema for editors: of grids, or with `space` of spaces.")
    ] = False,
) -> None:
    """List every key: type, default, meaning."""
    from mclab.config.keys import all_keys, shown
    from mclab.config.strict import ConfigError

    if schema:
        from mclab.plan.schema import grid_schema, space_schema

        schemas = {"grid": grid_schema, "space": space_schema}
        return result_json(schemas[of.one_of("--schema", files or "grid", tuple(schemas))]())
    if files is not None:
        raise ConfigError(f"{files}: goes with --schema; mclab keys alone lists every key")
    if as_json:
        return result_json([key.as_json() for key in all_keys()])
    rows = [("key", "type", "default", "meaning")]
    for key in all_keys():
        owner = f" ({key.of})" if key.of else ""
        rows.append((key.path, key.type, shown(key.default), key.meaning + owner))
    return result(in_columns(rows))

"""The verb that explains: keys."""

from typing import Annotated

import typer

from mclab.cli import options as of
from mclab.cli.streams import result, result_json
from mclab.cli.texts import aligned


def keys(
    as_json: of.Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print a JSON schema of grid files, for editors.")] = False,
) -> None:
    """List every key: type, default, meaning."""
    from mclab.config.keys import all_keys, shown

    if schema:
        from mclab.schema import grid_schema

        return result_json(grid_schema())
    if as_json:
        return result_json([vars(key) for key in all_keys()])
    rows = [("key", "type", "default", "meaning")]
    for key in all_keys():
        owner = f" ({key.of})" if key.of else ""
        rows.append((key.path, key.type, shown(key.default), key.meaning + owner))
    return result(aligned(rows))

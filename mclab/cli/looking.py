"""The verbs that explain: keys, and check of a part of one's own."""

from typing import Annotated

import typer

from mclab.cli import options as of
from mclab.cli.streams import result, result_json
from mclab.cli.texts import in_columns


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
        from mclab.schema import grid_schema, space_schema

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


def check(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="Dotted path, e.g. my_rules.Leaky; or a word, e.g. titans.")
    ],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments of its own, e.g. start=0.5.")
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="KIND", help="memory, gate, aggregate, task or mixer; by default as its source says."
        ),
    ] = None,
    as_json: of.Json = False,
) -> None:
    """Check a part of your own: one line for each property.

    A rule, gate, aggregation, task or mixer, put through the suite that mclab's own parts pass.
    """
    from mclab.config.own import KINDS
    from mclab.config.strict import ConfigError
    from mclab.conform import kind_of, suite
    from mclab.plan.loader import parse_value

    words = [word.partition("=") for word in args or ()]
    if strange := [name + sign for name, sign, _ in words if not sign]:
        raise ConfigError(f"{strange[0]}: needs KEY=VALUE")
    axis = kind_of(part) if as_ is None else of.one_of("--as", as_, tuple(KINDS))
    found = []
    for each in suite(axis, part, {name: parse_value(value, name) for name, _, value in words}):
        found.append(each)
        if not as_json:
            result(f"{each.name:24}  {each.fault or 'ok'}")
    if as_json:
        result_json([vars(each) for each in found])
    if failed := [each for each in found if each.fault]:
        noun = KINDS[axis].noun
        raise ConfigError(f"{part}, as a {noun}, fails {', '.join(each.name for each in failed)}: {failed[0].fault}")

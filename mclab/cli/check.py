"""`mclab check`: test a part of the user's own with the suite that mclab's own parts pass."""

from typing import Annotated

import typer

from mclab.cli import options as of
from mclab.cli.output import result, result_json


def check(
    part: Annotated[
        str,
        typer.Argument(metavar="PART", help="Dotted path of a part, e.g. my_rules.Leaky; or its name, e.g. titans."),
    ],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments of the part, e.g. start=0.5.")
    ] = None,
    as_: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="KIND",
            help="Kind of the part: memory, gate, aggregate, task or mixer; by default found from its source.",
        ),
    ] = None,
    as_json: of.Json = False,
) -> None:
    """Check a part of your own: one line for each property.

    A part is a rule, gate, aggregation, task or mixer. It must pass the suite that mclab's own parts pass.
    """
    from mclab.config.own import KINDS
    from mclab.config.strict import ConfigError
    from mclab.conform import kind_of, suite
    from mclab.plan.loader import parse_value

    words = [word.partition("=") for word in args or ()]
    if strange := [name + sign for name, sign, _ in words if not sign]:
        raise ConfigError(f"{strange[0]}: write an argument as KEY=VALUE, e.g. start=0.5")
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

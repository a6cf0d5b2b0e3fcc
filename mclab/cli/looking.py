"""The verbs that explain: sample and keys."""

from typing import Annotated

import typer

from mclab.cli import options as of
from mclab.cli.streams import result, result_json
from mclab.cli.texts import aligned


def sample(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task, e.g. mqar.")] = "mqar",
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Override keys of the task, e.g. pairs=4.")
    ] = None,
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, max=10_000, help="Sequences.")] = 3,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**31 - 1, help="Seed of a run.")] = 0,
    split: Annotated[str, typer.Option("--split", metavar="SPLIT", help="train, valid or test.")] = "train",
    as_json: of.Json = False,
) -> None:
    """Print sequences of a task so that a person can read them."""
    from mclab.sample import as_text, sampled

    if "=" in task:
        task, overrides = "mqar", [task, *(overrides or [])]
    _no_options(overrides or [])
    rows = sampled(task, overrides or [], seed=seed, split=split, count=count)
    if as_json:
        return result_json(rows)
    return result(as_text(rows))


def _no_options(overrides: list[str]) -> None:
    """Raises `ConfigError` where an option of the command is given as a key."""
    from mclab.config.strict import ConfigError

    for text in overrides:
        key, _, value = text.partition("=")
        if key in ("count", "seed", "split"):
            raise ConfigError(f"{text}: is an option here; write --{key} {value}")


def keys(as_json: of.Json = False) -> None:
    """List every key: type, default, meaning."""
    from mclab.config.keys import all_keys, shown

    if as_json:
        return result_json([vars(key) for key in all_keys()])
    rows = [("key", "type", "default", "meaning")]
    for key in all_keys():
        owner = f" ({key.of} alone)" if key.of else ""
        rows.append((key.path, key.type, shown(key.default), key.meaning + owner))
    return result(aligned(rows))

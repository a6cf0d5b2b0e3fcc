"""mclab: a lab bench for rapid architecture ablations on synthetic recall tasks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from mclab.config.error import ConfigError as ConfigError
    from mclab.config.run import RunConfig
    from mclab.models.lm import LM

__version__ = "0.1.0"


def run(
    grid: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    workers: int | str = "auto",
    overrides: str | Sequence[str] = (),
    quiet: bool = False,
) -> "pl.DataFrame":
    """Run what `mclab ablate` runs of a grid, in the same folder and with the same records, and load it as `load` does.

    `grid` is a path, YAML text or a mapping; `out` the run folder, by default `runs/` and the file's name, or a name
    made of what the text or mapping holds; `workers` a number of processes or `auto`; `overrides` such as
    `train.steps=50`. What is stored is not run again. A bar shows how far it is, unless `quiet`. Raises `ConfigError`.
    """
    from importlib import import_module

    # by name: the model side imports mclab for its version, and must not reach polars through it
    found: pl.DataFrame = import_module("mclab.notebook").run(grid, out, workers, overrides, quiet)
    return found


def load(folder: str | Path) -> "pl.DataFrame":
    """The stored runs of a folder, a row each: what its `tables/runs.csv` holds, read from the records.

    A folder without a plan gives every record with its keys, a sweep's with their trial. Raises `ConfigError` where
    there is no such folder.
    """
    from importlib import import_module

    # by name: the model side imports mclab for its version, and must not reach polars through it
    found: pl.DataFrame = import_module("mclab.verbs.load").frame(folder)
    return found


def load_curves(folder: str | Path) -> "pl.DataFrame":
    """The learning curves of a folder's stored runs, a row for each look at valid.

    Columns: `run_id` (that of `load`), `seed`, `step`, of training `loss`, `grad_norm` and `lr`, and `valid_accuracy`,
    `valid_loss` over all slices and with a slice's name in brackets. A curve that is damaged or missing is left out and
    named on standard error. Raises `ConfigError` where there is no such folder.
    """
    from importlib import import_module

    found: pl.DataFrame = import_module("mclab.verbs.load").curves(folder)
    return found


def load_model(path: str | Path, run: str | None = None) -> "tuple[LM, RunConfig]":
    """A trained model in eval on the CPU, and its run; `path` is a file of weights, or a run folder with `run` an id.

    Imports torch. Raises `ConfigError` where there are no such weights (`--save-weights` keeps them).
    """
    from mclab.train.weights import load_model

    return load_model(path, run)


def __getattr__(name: str) -> Any:
    """`ConfigError`, and `nn` (imports torch), when they are asked for: `import mclab` alone loads next to nothing."""
    from importlib import import_module

    if name == "ConfigError":
        return import_module("mclab.config.error").ConfigError
    if name == "nn":
        return import_module("mclab.nn")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

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
    """Run a grid as `mclab ablate` does, with the same folder and records, and return the frame that `load` returns.

    `grid` is a path, YAML text or a mapping. `out` is the run folder; by default it is `runs/` and the file's name, or
    `runs/` and a name with a hash of the text or mapping. `workers` is a number of processes or `auto`. `overrides` are
    one or more assignments such as `train.steps=50`. Runs whose records are stored do not run again. A bar shows the
    progress, unless `quiet`. Raises `ConfigError`.
    """
    from importlib import import_module

    # by name: the model side imports mclab for its version, and must not reach polars through it
    found: pl.DataFrame = import_module("mclab.notebook").run(grid, out, workers, overrides, quiet)
    return found


def load(folder: str | Path) -> "pl.DataFrame":
    """Return a frame with one row per stored run of a folder: the content of `tables/runs.csv`, read from the records.

    If the folder has no plan, the frame has every record with its keys; the runs of a sweep also have the number of
    their trial. Raises `ConfigError` if there is no such folder.
    """
    from importlib import import_module

    # by name: the model side imports mclab for its version, and must not reach polars through it
    found: pl.DataFrame = import_module("mclab.verbs.load").frame(folder)
    return found


def load_curves(folder: str | Path) -> "pl.DataFrame":
    """Return the learning curves of a folder's stored runs, with one row per evaluation during training.

    Columns: `run_id` (as in `load`), `seed` and `step`; `loss`, `grad_norm` and `lr` of training; `valid_accuracy` and
    `valid_loss` over all slices, and again for each slice, with its name in brackets. A curve that is damaged or
    missing is left out and named on standard error. Raises `ConfigError` if there is no such folder.
    """
    from importlib import import_module

    found: pl.DataFrame = import_module("mclab.verbs.load").curves(folder)
    return found


def load_model(path: str | Path, run: str | None = None) -> "tuple[LM, RunConfig]":
    """Return a trained model (on the CPU, in eval mode) and the config of its run.

    `path` is a file of weights, or a run folder, where `run` is the id of the run. Imports torch. Raises `ConfigError`
    if these weights are not there (`--save-weights` keeps them).
    """
    from mclab.train.weights import load_model

    return load_model(path, run)


def __getattr__(name: str) -> Any:
    """Import `ConfigError` and `nn` (which imports torch) at first use, so that `import mclab` alone is fast."""
    from importlib import import_module

    if name == "ConfigError":
        return import_module("mclab.config.error").ConfigError
    if name == "nn":
        return import_module("mclab.nn")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

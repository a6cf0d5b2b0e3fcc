"""`mclab train`: train one run from defaults and overrides."""

from collections.abc import Sequence
from functools import partial

from mclab.cli import options as of
from mclab.cli.ablate import run_plan, show_table
from mclab.cli.dry_run import show_preview
from mclab.cli.output import remark
from mclab.config.options import AUTO, OFF, RunOptions


def train(
    overrides: of.Overrides = None,
    set_: of.Set = None,
    out: of.TrainOut = None,
    seeds: of.Seeds = None,
    device: of.Device = AUTO,
    workers: of.Workers = "1",
    scheduler: of.Scheduler = None,
    pack: of.Pack = AUTO,
    threads: of.Threads = RunOptions.threads,
    kernels: of.Kernels = AUTO,
    compile_: of.Compile = OFF,
    dry_run: of.DryRun = False,
    as_json: of.Json = False,
    smoke: of.Smoke = False,
    retry_failed: of.Retry = False,
    extend: of.Extend = False,
    save_weights: of.SaveWeights = False,
) -> None:
    """Train one run, once for each seed, from defaults and overrides. Further runs may go into the same folder."""
    from mclab.plan.grid import plan_from
    from mclab.verbs.train import takes_more

    _refuse_files(overrides or [])
    plan = plan_from({}, "train", [*(overrides or []), *(set_ or [])], seeds, smoke)
    where = out or of.default_out(plan.name, smoke)
    extend = extend or takes_more(where, plan.name, remark)
    options = RunOptions(
        *(device, workers, scheduler, pack, threads),
        retry_failed=retry_failed,
        extend=extend,
        save_weights=save_weights,
        kernels=kernels,
        compile=compile_,
    )
    if dry_run:
        return show_preview(plan, where, options, as_json)
    return run_plan(plan, where, options, None, partial(show_table, as_json=as_json))


def _refuse_files(overrides: Sequence[str]) -> None:
    """Raise `ConfigError` where a grid's file was given: `mclab train` takes keys only."""
    from mclab.config.strict import ConfigError

    for text in overrides:
        if "=" not in text and text.endswith((".yaml", ".yml")):
            raise ConfigError(
                f"{text} is a grid's file: mclab ablate --grid {text} trains it; "
                f"mclab train takes keys alone, e.g. train.steps=50"
            )

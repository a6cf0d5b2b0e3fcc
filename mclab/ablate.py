"""From a plan to a full run folder: the store, the runner, the table and the plot, and what the user is told."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.describe import as_dict
from mclab.plan.plan import Plan
from mclab.plan.select import Lookup
from mclab.plan.size import size, tokens
from mclab.runner import Progress, Summary, execute
from mclab.store import Records, Store

#: What one core of a recent laptop does in small training steps, in floating-point operations a second. Rough.
FLOPS = 1.5e10
#: Exit codes: all done, some runs failed or diverged or are missing, interrupted.
DONE, FAILED, INTERRUPTED = 0, 3, 130


@dataclass(frozen=True)
class Options:
    """How to run a plan; nothing here changes a result."""

    device: str = "auto"
    workers: int | str = "auto"
    scheduler: str | None = None
    pack: int | str = "auto"
    fail_fast: bool = False
    max_failures: int | None = None
    retry_failed: bool = False
    extend: bool = False


def ablate(plan: Plan, out: Path, options: Options, *, grid: bytes | None, as_json: bool = False) -> int:
    """Run what is missing in `out`, write tables and plots, print; returns the exit code.

    Raises `ConfigError` for a folder that cannot be used and for a device that is not there.
    """
    for line in (*plan.notes, *plan.warnings):
        _say(line)
    with Store(out, say=_say) as store:
        store.adopt(plan, grid, extend=options.extend)
        device = resolve_device(options.device)
        with _progress_bar() as progress:
            summary = execute(
                plan,
                store,
                device=device,
                workers=options.workers,
                scheduler=options.scheduler,
                pack=options.pack,
                fail_fast=options.fail_fast,
                max_failures=options.max_failures,
                retry_failed=options.retry_failed,
                progress=progress,
                echo=_say,
            )
        files = write_report(plan, store.lookup, out)
    _tell(plan, store.lookup, files, summary, as_json)
    return INTERRUPTED if summary.interrupted else DONE if summary.clean else FAILED


def resolve_device(name: str) -> str:
    """`auto` is CUDA where there is one. Raises `ConfigError` for a device that this machine lacks."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()) or (kind == "cpu" and number):
        raise ConfigError(f"--device: {name!r} is not auto, cpu, cuda or cuda:N")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise ConfigError(f"--device: no {name} here ({torch.cuda.device_count()} CUDA devices seen); take --device cpu")
    return name


def write_report(plan: Plan, lookup: Lookup, out: Path) -> list[Path]:
    """Tables and plots of what is stored."""
    from mclab.report.plots import write_plots
    from mclab.report.write import write_tables

    return [*write_tables(plan, lookup, out / "tables"), *write_plots(plan, lookup, out / "plots")]


def _tell(plan: Plan, lookup: Lookup, files: list[Path], summary: Summary, as_json: bool) -> None:
    if as_json:
        from mclab.report.tables import cells_frame

        facts = {"cells": cells_frame(plan, lookup).to_dicts(), "stored": dict(summary.stored), "missing": summary.missing}
        print(json.dumps(facts, indent=1))
    else:
        from mclab.report.terminal import terminal_table

        print(terminal_table(plan, lookup))
        shown = [path for path in files if path.suffix in (".md", ".png")]
        print("wrote " + ", ".join(map(str, shown)))
    counts = ", ".join(f"{n} {status}" for status, n in sorted(summary.ran.items())) or "nothing to do"
    _say(f"this command: {counts}; {summary.skipped} stored before; {summary.wall_s:.0f} s")
    if summary.missing:
        _say(f"{summary.stopped}; {summary.missing} runs missing; the same command goes on from here")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    """A bar of runs on a terminal; nothing elsewhere."""
    from tqdm import tqdm

    with tqdm(unit="run", disable=None, file=sys.stderr) as bar:

        def show(now: Progress) -> None:
            bar.total = now.total
            bar.n = now.done
            if now.steps:
                bar.set_postfix_str(f"step {now.step}/{now.steps}", refresh=False)
            bar.refresh()

        yield show


def dry_run(plan: Plan, out: Path, options: Options) -> dict[str, Any]:
    """What the plan would run, as data; `lines` is the same for people. Imports no torch, writes nothing."""
    counts = size(plan)
    cells = [_cell_facts(cell.name, next(iter(cell.candidates[0].runs.values()))) for cell in plan.cells]
    total = sum(_seconds(run) for run in plan.first_runs())
    seconds = total * counts.runs / max(1, counts.first)
    lines = [
        *([plan.question] if plan.question else []),
        *(f"{c['name']}: {c['params']:,} parameters, state {c['state_fixed']:,} + {c['state_cached']:,} floats" for c in cells),
        *plan.notes,
        *(f"warning: {line}" for line in plan.warnings),
        f"{counts.listed} cells, {counts.cells} distinct; {counts.runs} runs"
        + (f" ({counts.first} to choose by)" if plan.select else ""),
        f"{counts.tokens:,} training tokens; very roughly {_duration(seconds)} on one CPU core; would write {out}",
    ]
    return {**vars(counts), "seconds_on_one_core": round(seconds), "out": str(out), "lines": lines, "plan": as_dict(plan)}


def _cell_facts(name: str, run: RunConfig) -> dict[str, Any]:
    fixed, cached = state_floats(run)
    return {"name": name, "params": parameters(run), "state_fixed": fixed, "state_cached": cached}


def _seconds(run: RunConfig) -> float:
    looks = run.train.steps / run.eval.every * len(run.task.slices) * run.eval.valid * run.task.length
    return (tokens(run) * 6 + looks * 2) * parameters(run) / FLOPS


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def stored_plan(records: Records) -> Plan:
    """The plan that a run folder holds. Raises `ConfigError` where it holds none."""
    plan = records.plan()
    if plan is None:
        raise ConfigError(f"{records.path}: holds no plan.json; give the folder of an ablate or train command")
    return plan


def listing(records: Records) -> list[dict[str, Any]]:
    """One object a stored run: id, status, seed, the keys that vary among them, and the metrics."""
    rows = records.scan()
    varied = [key for key in _all_keys(rows) if len({json.dumps(row["config"].get(key)) for row in rows}) > 1]
    return [_listed(row, [key for key in varied if key != "seed"]) for row in rows]


def _all_keys(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row["config"]))


def _listed(row: dict[str, Any], varied: list[str]) -> dict[str, Any]:
    metrics = {
        f"{split}_{name}": scores["all"][name]
        for split in ("valid", "test")
        for name in ("accuracy", "loss")
        if (scores := row[split])
    }
    rest = {key: row[key] for key in ("steps", "steps_to_99", "params", "tokens_per_s", "wall_s", "error") if row[key] is not None}
    return {
        "run_id": row["run_id"],
        "status": row["status"],
        "seed": row["seed"],
        **{key: row["config"][key] for key in varied if key in row["config"]},
        **metrics,
        **rest,
    }

"""Tables and plots of many rows: from plan and stored runs to files, each in a process of its own.

The runs are made up: accuracies around 0.5 that rise along one key. They stand in memory, as after the last run of a
grid, so that reading them is not in the times.
"""

import random
import tempfile
import time
from pathlib import Path

from benchmarks import process, results
from mclab.config.ids import SCIENCE, canonical, run_id
from mclab.config.outcome import ALL, Outcome, Score
from mclab.config.params import parameters, state_floats
from mclab.config.run import RunConfig
from mclab.config.stored import StoredRun, StoredScore
from mclab.config.strict import leaves
from mclab.plan.grid import plan_from
from mclab.plan.plan import Plan
from mclab.store.record import FIGURES

#: Rows by the number of values of three keys, and seeds of each.
GRIDS = {50: (5, 10, 1), 1_000: (10, 10, 10), 10_000: (10, 100, 10), 20_000: (20, 100, 10)}
SEEDS = {50: 5, 1_000: 5, 10_000: 10, 20_000: 5}
NOTE = (
    "Seconds, and peak memory of a process, for the six tables, the text at the end of the command, and the plots that "
    "are drawn unasked, as png and svg; *along a key* is one numeric key of so many values. The runs are made up and "
    "stand in memory: *nothing* is the peak with plan and runs alone.\n"
)
HEAD = "rows | seeds | what | seconds | peak MB"


def plan_of(rows: int, along: bool) -> Plan:
    """A grid with so many rows: along one key, or of three."""
    seeds = list(range(SEEDS[rows]))
    if along:
        return plan_from(
            {"grid": {"train.lr": [number / rows for number in range(1, rows + 1)]}, "seeds": seeds}, "rows"
        )
    first, second, third = (range(1, count + 1) for count in GRIDS[rows])
    grid = {
        "model.mixer.segment": list(first),
        "train.lr": [number / 1000 for number in second],
        "train.weight_decay": [number / 100 for number in third],
    }
    return plan_from({"grid": grid, "seeds": seeds}, "rows")


def stored_of(plan: Plan) -> dict[str, StoredRun]:
    """A made-up run for every id of the plan."""
    runs = {run_id(run): run for run in plan.first_runs()}
    return {name: _stored(name, run) for name, run in runs.items()}


def _stored(name: str, run: RunConfig) -> StoredRun:
    chance = random.Random(name)
    level = min(1.0, 0.3 + 3 * run.train.lr)
    scores = {}
    for part in (ALL, *run.task.slices):
        accuracy = min(1.0, max(0.0, chance.gauss(level, 0.05)))
        scores[part] = StoredScore({"accuracy": accuracy, "loss": 1 - accuracy, "token_accuracy": accuracy})
    fixed, cached = state_floats(run)
    own = Score(0.5, 1.0)
    figures = {figure: getattr(Outcome("done", valid={ALL: own}, test={ALL: own}), figure) for figure in FIGURES}
    figures |= {"valid": scores, "test": scores, "steps": run.train.steps, "params": parameters(run)}
    figures |= {"state_fixed": fixed, "state_cached": cached, "tokens_per_s": 1e5, "wall_s": 10.0, "overlap": 0.0}
    config = canonical(run)
    known = {"run_id": name, "science": SCIENCE, "seed": run.seed, "keys": dict(leaves(config)), "config": config}
    return StoredRun(**figures, **known)


def measure(what: str, rows: int) -> tuple[float, int]:
    """Seconds of one of `WAYS`, and bytes that its process had at most."""
    plan = plan_of(rows, what.endswith("along a key"))
    lookup = stored_of(plan).get
    began = time.perf_counter()
    if what.startswith("tables"):
        from mclab.report.write import table_files

        table_files(plan, lookup)
    elif what.startswith("text"):
        from mclab.report.terminal import terminal_table

        terminal_table(plan, lookup)
    elif what.startswith("plots"):
        from mclab.report.plot.kinds import write_plots

        with tempfile.TemporaryDirectory() as folder:
            write_plots(plan, lookup, Path(folder))
    return time.perf_counter() - began, process.peak()


WAYS = ("nothing", "tables", "text", "plots", "plots along a key")


def main() -> None:
    rows = []
    for count in (1_000, 20_000):
        for what in WAYS:
            seconds, peak = process.alone("rows", "measure", what, count)
            rows.append([f"{count:,}", str(SEEDS[count]), what, f"{seconds:.1f}", f"{peak / 2**20:.0f}"])
    text = f"{NOTE}\n{results.table(HEAD.split(' | '), rows)}"
    print(f"\n{text}\nwritten to {results.write('rows', text)}")

"""The command that would go on with a run folder: same grid, same overrides, other seeds."""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from mclab.config.keys import shown
from mclab.config.strict import ConfigError, Leaf, leaves
from mclab.plan.difference import difference
from mclab.plan.grid import load_plan
from mclab.plan.overrides import SMOKE_NOTE
from mclab.plan.plan import Plan
from mclab.plan.quick import NOTE as QUICK_NOTE
from mclab.plan.quick import QUICK

#: Where a grid's file usually lies, seen from where a command is given.
PLACES = ("ablations", ".", "ablations/paper")


def command(folder: Path, plan: Plan) -> str | None:
    """`mclab ablate --grid ablations/gating.yaml`, to which `--seeds 0..9` can be added.

    The grid is the user's own file where one of that name still holds what the folder's `grid.yaml` does, else that
    copy. Overrides are found by comparing the folder's plan with the grid's. `None` where no command would do: a
    folder without a grid, a smoke test, a grid that has come to other cells since.
    """
    copy = folder / "grid.yaml"
    if SMOKE_NOTE in plan.notes or not copy.is_file():
        return None
    quick = QUICK_NOTE in plan.notes
    name = plan.name.removesuffix(f"-{QUICK}") if quick else plan.name
    grid = next(_originals(copy, name), copy)
    try:
        overrides = _overrides(load_plan(grid, seeds=_seeds(plan), quick=quick), plan)
        if difference(plan, load_plan(grid, overrides, _seeds(plan), quick=quick)):
            return None
    except (ConfigError, OSError):
        return None
    usual = Path("runs") / (f"{grid.stem}-{QUICK}" if quick else grid.stem)
    out = [] if folder == usual else ["--out", str(folder)]
    flags = [*[f"--{QUICK}"] * quick, *["--save-weights"] * (folder / "weights").is_dir()]
    return shlex.join(["mclab", "ablate", "--grid", str(grid), *overrides, *flags, *out])


def _seeds(plan: Plan) -> str:
    return f"[{', '.join(map(str, plan.seeds))}]"


def _originals(copy: Path, name: str) -> Iterator[Path]:
    """Files of the plan's name that hold the same grid."""
    for place in PLACES:
        path = Path(place) / f"{name}.yaml"
        try:
            if path.read_bytes() == copy.read_bytes():
                yield path
        except OSError:
            continue


def _overrides(grid: Plan, plan: Plan) -> list[str]:
    """`train.steps=50` for each key that has, in every cell, another value than the grid gives it, and the same."""
    pairs = list(zip(grid.cells, plan.cells, strict=False))
    moved: dict[str, set[str]] = {}
    for before, after in pairs:
        ours, theirs = (dict(leaves(next(iter(cell.candidates[0].runs.values())))) for cell in (before, after))
        for path, value in theirs.items():
            if path in ours and ours[path] != value and path not in _chosen(plan):
                moved.setdefault(path, set()).add(_text(value))
    return [f"{path}={texts.pop()}" for path, texts in sorted(moved.items()) if len(texts) == 1]


def _chosen(plan: Plan) -> Sequence[str]:
    return ("seed", *(plan.select.over if plan.select else ()))


def _text(value: Leaf) -> str:
    """As the command line reads it; words that are no plain text in YAML get quotes."""
    text = shown(value)
    plain = not isinstance(value, str) or value.replace("_", "").isalnum()
    return text if plain else json.dumps(value)

"""Find the command line that continues a run folder: the same grid and overrides, to which other seeds can be added."""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from mclab.config.keys import shown
from mclab.config.strict import ConfigError, Leaf
from mclab.plan.grid import load_plan
from mclab.plan.only import narrowed
from mclab.plan.overrides import SMOKE_NOTE
from mclab.plan.plan import Given, Plan
from mclab.plan.plan_diff import plan_diff
from mclab.plan.quick import NOTE as QUICK_NOTE
from mclab.plan.quick import QUICK

#: Folders in which the file of a grid usually is, relative to the current folder.
PLACES = ("ablations", ".", "ablations/paper")


def command(folder: Path, plan: Plan) -> str | None:
    """Return the command that continues `folder`, e.g. `mclab ablate --grid ablations/gating.yaml`.

    `--seeds 0..9` can be added to it. The grid is the user's own file if that still has the content of the folder's
    copy `grid.yaml`, else the copy. `None` if no command continues the folder: it holds no grid, it is a smoke test, or
    its grid gives other cells by now.
    """
    copy = folder / "grid.yaml"
    if not copy.is_file():
        return None
    try:
        given = _before(plan, copy) if plan.given is None else plan.given
        if given.smoke:
            return None
        grid = _original([given.grid] if given.grid else [], copy)
        overrides = [word for word in given.overrides if word.partition("=")[0].strip() != "seed"]
        again = load_plan(grid, overrides, None if plan.until else _seeds(plan), quick=given.quick)
        if plan_diff(plan, narrowed(again, given.only)):
            return None
    except (ConfigError, OSError):
        return None
    usual = Path("runs") / (f"{grid.stem}-{QUICK}" if given.quick else grid.stem)
    out = [] if folder == usual else ["--out", str(folder)]
    only = [word for text in given.only for word in ("--only", text)]
    flags = [*only, *[f"--{QUICK}"] * given.quick, *["--save-weights"] * (folder / "weights").is_dir()]
    return shlex.join(["mclab", "ablate", "--grid", str(grid), *overrides, *flags, *out])


def _seeds(plan: Plan) -> str:
    return f"[{', '.join(map(str, plan.seeds))}]"


def _original(paths: Iterable[str], copy: Path) -> Path:
    """Return the first file in `paths` with the same content as `copy`, else `copy`.

    Only regular files are read, since a path may have become a pipe.
    """
    same = (path for path in map(Path, paths) if path.is_file() and path.read_bytes() == copy.read_bytes())
    return next(same, copy)


def _before(plan: Plan, copy: Path) -> Given:
    """Return a guess at the command-line arguments of an old plan, which was stored without them (`plan.given` is
    `None`).

    Every key whose value in all cells differs from the grid file's is taken as an override.
    """
    if SMOKE_NOTE in plan.notes:
        return Given(smoke=True)
    quick = QUICK_NOTE in plan.notes
    name = plan.name.removesuffix(f"-{QUICK}") if quick else plan.name
    grid = _original([f"{place}/{name}.yaml" for place in PLACES], copy)
    moved = plan_diff(load_plan(grid, seeds=_seeds(plan), quick=quick), plan).changed
    return Given(str(grid), tuple(f"{path}={_text(value)}" for path, _, value in moved), quick=quick)


def _text(value: Leaf) -> str:
    """Return a value as written on the command line; strings that YAML might read as another type are quoted."""
    text = shown(value)
    plain = not isinstance(value, str) or value.replace("_", "").isalnum()
    return text if plain else json.dumps(value)

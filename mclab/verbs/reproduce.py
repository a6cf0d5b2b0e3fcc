"""`mclab reproduce`: compare the results of a grid with the published figures in its `paper` block."""

from pathlib import Path

from mclab.config.error import did_you_mean
from mclab.config.strict import ConfigError
from mclab.plan.plan import Plan
from mclab.report.paper.comparison import Reproduction, reproduction
from mclab.store import Records
from mclab.store.files import plainly
from mclab.verbs.load import opened

#: The folder with the grids of published tables and figures, relative to the current folder; else it is next to the
#: package.
GRIDS = Path("ablations/paper")
_BESIDE = Path(__file__).parents[2] / GRIDS


def grid_of(target: str) -> Path:
    """Return the path of a grid from `target`: the name of a published table (`table5`), or a path.

    Raises `ConfigError`, with the nearest name, if there is no such grid.
    """
    if target.endswith((".yaml", ".yml")) or Path(target).is_file():
        return Path(target)
    for folder in (GRIDS, _BESIDE):
        if (path := folder / f"{target}.yaml").is_file() and Path(target).name == target:
            return path
    known = sorted({path.stem for folder in (GRIDS, _BESIDE) for path in folder.glob("*.yaml")})
    hint = did_you_mean(target, known) or f"published tables: {', '.join(known) or 'none here'}"
    raise ConfigError(f"{target}: this is neither the name of a published table nor a grid's file; {hint}")


def published(plan: Plan, where: Path) -> Plan:
    """Return `plan`. Raises `ConfigError`, which names the file `where`, if it has no `paper` block."""
    if plan.paper is None:
        raise ConfigError(f"{where}: this grid has no paper block to compare its results with; mclab ablate runs it")
    return plan


def stored(folder: Path) -> tuple[Plan, Records]:
    """Return the plan and the records of a run folder. Raises `ConfigError` if it has no plan with a `paper` block."""
    records = opened(folder, "plan.json")
    plan = records.plan()
    assert plan is not None, "the folder has a plan"
    return published(plan, folder / "plan.json"), records


def write(found: Reproduction, out: Path) -> list[Path]:
    """Write the tables of a reproduction into `out`/tables, and return the files.

    Raises `ConfigError` if they cannot be written.
    """
    from mclab.report.paper import files

    with plainly(out / "tables"):
        return files.write(found, out / "tables")


__all__ = ["grid_of", "published", "reproduction", "stored", "write"]

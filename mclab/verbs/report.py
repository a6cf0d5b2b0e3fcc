"""`mclab report`: make the HTML page of a run folder."""

import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from mclab.plan.space_trials import Trials
from mclab.report.page.grid import grid_page
from mclab.report.page.html import Source
from mclab.report.page.sweep import sweep_page
from mclab.store import SPACE, Records
from mclab.verbs.load import planned, trials
from mclab.verbs.resume import command


def page(folder: Path, say: Callable[[str], None]) -> bytes:
    """Return the page of a run folder of a grid or a search. Raises `ConfigError` for any other folder."""
    if (study := trials(folder)) is not None:
        return sweep_page(study, Records(folder, say=say).scan(), _of_sweep(folder, study))
    plan, records = planned(folder, say)
    again = command(folder, plan)
    made = again.replace("mclab ablate --grid", "mclab reproduce", 1) if again and plan.paper else again
    source = Source(folder, _dates(folder), (*([made] if made else []), *_readers(folder)), again)
    return grid_page(plan, records.lookup, records.curve, source)


def _of_sweep(folder: Path, study: Trials) -> Source:
    space, where = folder / SPACE, shlex.quote(str(folder))
    made = f"mclab sweep --space {shlex.quote(str(space))} --trials {study.asked} --out {where}"
    lines = [f"{made}  # and the keys that were given with it"] if space.is_file() else []
    return Source(folder, _dates(folder), (*lines, *_readers(folder)))


def _readers(folder: Path) -> tuple[str, str]:
    """Return the commands that print the folder's table and write its page again."""
    where = shlex.quote(str(folder))
    return f"mclab table {where}", f"mclab report {where}"


def _dates(folder: Path) -> tuple[str, str] | None:
    """Return the days on which the first and the last record were written, by the times of the files.

    `None` if there are no records.
    """
    times = [path.stat().st_mtime for path in (folder / "records").glob("*.json")]
    if not times:
        return None
    first, last = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in (min(times), max(times)))
    return first, last

"""Modules of the user's own, checked before a command trains with them; a check may end the process."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from mclab.config.ids import run_id
from mclab.config.own import parts_of
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.store import Store
from mclab.store.crashes import Flights

Runs = list[RunConfig]


def check_modules(
    runs: Iterable[RunConfig],
    out: Path,
    device: str,
    say: Callable[[str], None],
    *,
    wanted: Callable[[Store, RunConfig], bool] = lambda store, run: True,
    refuse: bool = False,
    forget: bool = False,
) -> None:
    """Check the modules of the `wanted` among the runs, noted in the run folder `out`. Raises `ConfigError` as `check`.

    A module that has ended the process too often is not checked again: its runs are left to those who train them, or
    with `refuse` it is a `ConfigError`; `forget` begins anew. A refusal leaves no folder that was not there.
    """
    own = [run for run in runs if parts_of(run)]
    if not own:
        return
    made = not out.exists()
    try:
        with Store(out, say=say) as store:
            _check([run for run in own if wanted(store, run)], store, device, say, refuse, forget)
    except ConfigError:
        if made:
            _remove(out)
        raise


def _check(runs: Runs, store: Store, device: str, say: Callable[[str], None], refuse: bool, forget: bool) -> None:
    from mclab.conform import check

    flights, alike = Flights(store.path, store.begun()), defaultdict[object, Runs](list)
    for run in runs:
        alike[run.model.mixers, run.task].append(run)
    for group in alike.values():
        names = [run_id(run) for run in group]
        if forget:
            flights.settle(names)
        if any(poison := [flights.poison(name) for name in names]):
            if refuse:
                told = next(filter(None, poison))
                raise ConfigError(f"run {names[0]}: {told}; mend its module, then give --retry-failed")
            continue
        flights.begin(names)
        try:
            check(group, device, say)
        finally:
            flights.end()


def _remove(out: Path) -> None:
    """A run folder in which nothing has been stored."""
    with suppress(OSError):
        for folder in (out / "records", out / "curves"):
            folder.rmdir()
        (out / "lock").unlink()
        out.rmdir()

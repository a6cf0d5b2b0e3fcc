"""Check modules of the user's own before a command trains with them. A faulty module may end the process."""

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
    """Check the user's modules in those of `runs` that are `wanted`. Raises `ConfigError` as `mclab.conform.check`
    does.

    During a check the run folder `out` holds a file that says so; a later command then knows if the check ended the
    process. A module that did so too often is not checked again: with `refuse` this raises `ConfigError`, else its runs
    are passed to training, which stores them as failed. `forget` removes earlier such files first. If a `ConfigError`
    is raised, a run folder that this function has created is removed.
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
                raise ConfigError(
                    f"run {names[0]}: {told}; mend its module, then repeat the command with --retry-failed"
                )
            continue
        flights.begin(names)
        try:
            check(group, device, say)
        finally:
            flights.end()


def _remove(out: Path) -> None:
    """Remove the run folder `out`, if nothing has been stored in it."""
    with suppress(OSError):
        for folder in (out / "records", out / "curves"):
            folder.rmdir()
        (out / "lock").unlink()
        out.rmdir()

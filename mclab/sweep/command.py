"""Run a search: open the run folder and the study, search, write the results, and report them."""

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import optuna
from optuna.exceptions import StorageInternalError
from sqlalchemy.exc import SQLAlchemyError

from mclab.config.options import RunOptions
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.passwords import without_password
from mclab.plan.space import Space
from mclab.plan.space_trials import Trials, as_dict
from mclab.report.text import cut
from mclab.runner import Progress
from mclab.runner.devices import here, resolved
from mclab.runner.memory_limits import machine, needs, refuse
from mclab.runner.own_modules import check_modules
from mclab.store import SPACE, Store
from mclab.store.files import StoreError, named_as_given, plainly, write_whole
from mclab.store.lock import refuse_foreign
from mclab.sweep import samplers
from mclab.sweep.cost import TRIALS
from mclab.sweep.importance import RESAMPLES, weighed
from mclab.sweep.journal import NAME, Journal
from mclab.sweep.open_study import open_study
from mclab.sweep.postgres import Postgres
from mclab.sweep.report import Report
from mclab.sweep.search import Search
from mclab.sweep.storage import ConnectionLostError, Say, StudyStorage
from mclab.sweep.study import Shared
from mclab.sweep.trials import Seen, seen_of
from mclab.workers.signals import interrupts_held

#: The seconds that giving up this process's trials may take when the command ends early.
GOODBYE = 2.0

#: The address of a database as `key=value` pairs. PostgreSQL's tools accept this form, `--storage` does not.
_PAIRS = re.compile(r"(^|\s)(host|user|dbname|password)\s*=")


@dataclass(frozen=True)
class Options:
    """How to search: until the study `study` has `trials` trials. `seed` is the seed of the sampler.

    `study` is by default the name of the space. `storage` is where the study is stored, by default a journal in the run
    folder.
    """

    trials: int
    how: RunOptions
    storage: str | None = None
    study: str | None = None
    seed: int = 0


def sweep(
    space: Space, out: Path, options: Options, *, content: bytes, say: Say, progress: Callable[[Progress], None]
) -> Report:
    """Search until the study has `options.trials` finished trials. The same command again continues the search.

    `content` is the content of the space's file. If it is interrupted, this process gives its trials up, so that
    another process can take them over. Raises `ConfigError` if a package is missing, if the folder or the study belongs
    to something else, or if a database does not answer.
    """
    options = replace(options, how=resolved(options.how))
    samplers.check(space.sampler)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    _refuse_a_grid(out)
    on_cpu = options.how.device == "cpu" and options.how.scheduler is None
    refuse(needs([("base", space.base_point().runs[0])])[0], machine() if on_cpu else None)
    with named_as_given(out, say) as (place, say_so):  # absolute: a user's module may change the folder
        points, device = _points(space), here(options.how)
        check_modules(points, place, device, say_so, refuse=True, forget=options.how.retry_failed)
        report = _swept(space, place, options, content, say_so, progress)
    files = tuple(out / path.relative_to(place) for path in report.files)
    unwritten = tuple(line.replace(str(place), str(out), 1) for line in report.unwritten)
    return replace(report, out=out, files=files, unwritten=unwritten)


def _swept(
    space: Space, out: Path, options: Options, content: bytes, say: Say, progress: Callable[[Progress], None]
) -> Report:
    """Do the work of `sweep`; `out` is an absolute path."""
    with ExitStack() as stack:

        def opened() -> StudyStorage:
            return stack.enter_context(closing(_place(options.storage, out, say)))

        # A database that does not answer leaves no folder behind. A journal may be in the folder, which is made first.
        named = options.storage or ""
        database = opened() if "://" in named or _PAIRS.search(named) else None
        store = stack.enter_context(Store(out, say=say))
        place = database or opened()
        try:
            return _searched(space, place, store, options, content, say, progress)
        except (StorageInternalError, SQLAlchemyError) as error:
            reason = cut(" ".join(str(error.__cause__ or error).split()), 200)
            raise ConfigError(
                f"{place.where}: {reason}; all stored results are kept, and the same command continues the search"
            ) from error


def _searched(
    space: Space,
    place: StudyStorage,
    store: Store,
    options: Options,
    content: bytes,
    say: Say,
    progress: Callable[[Progress], None],
) -> Report:
    began, name = time.monotonic(), options.study or space.name
    for line in (*space.notes, *(f"warning: {line}" for line in space.warnings)):
        say(line)
    refuse_foreign(store.path, (SPACE,), {TRIALS: b""})
    refuse_foreign(store.path, (TRIALS, NAME), {SPACE: content})
    shared = open_study(name, space, place, options.trials, options.seed, say)
    write_whole(store.path / SPACE, content)
    if options.how.retry_failed and (number := shared.retry_failed()):
        say(f"{number} failed trial{'s' * (number != 1)} will be tried again")
    search = Search(shared, store, options.how, progress, say)
    interrupted = ended = gone = False
    try:
        with shared.beating():
            search.go()
        ended = search.tally.stopped is None
    except KeyboardInterrupt:
        interrupted = True
    finally:
        if not ended:
            gone = not _given_up(shared)
    if interrupted and gone:
        raise KeyboardInterrupt
    seen = seen_of(shared.frozen())  # before interrupts are held: a database may be slow
    with interrupts_held():
        found = weighed(_found(space, shared, name, seen), space.sampler, resamples=0 if interrupted else RESAMPLES)
        write_whole(store.path / TRIALS, f"{json.dumps(as_dict(found), indent=1)}\n".encode())
    files, faults = ([store.path / TRIALS], []) if interrupted else write(found, store.path)
    wall = time.monotonic() - began
    return Report(found, store.path, search.tally, wall, interrupted, tuple(files), tuple(faults))


def _given_up(shared: Shared) -> bool:
    """Give up this process's trials. Return whether that was done within `GOODBYE` seconds.

    A lock or a database that hangs must not delay the end of the command. Trials that were not given up are passed on
    later, when another process finds that their owner is dead.
    """
    given = threading.Event()
    shared.me.retire()

    def release() -> None:
        with suppress(SQLAlchemyError, StorageInternalError, ConnectionLostError, OSError, ConfigError):
            shared.release()
            given.set()

    thread = threading.Thread(target=release, daemon=True)
    thread.start()
    thread.join(GOODBYE)
    return given.is_set()


def _found(space: Space, shared: Shared, name: str, seen: Seen) -> Trials:
    return Trials(
        study=name,
        question=space.question,
        axes=tuple(axis.spec for axis in space.axes),
        objectives=space.objectives,
        seeds=space.seeds,
        asked=shared.most,
        trials=seen.trials,
        looks=seen.looks,
        without_recall=seen.without_recall,
    )


def write(found: Trials, out: Path) -> tuple[list[Path], list[str]]:
    """Write tables and plots. Return the written files, `trials.json` among them, and one line for each fault."""
    from mclab.report.sweeps.plots import write_plots
    from mclab.report.sweeps.write import write_tables

    files, faults = [out / TRIALS], list[str]()
    for way, folder in ((write_tables, out / "tables"), (write_plots, out / "plots")):
        try:
            with plainly(folder):
                files += way(found, folder)
        except StoreError as error:
            faults.append(str(error))
    return files, faults


def _place(storage: str | None, out: Path, say: Say) -> StudyStorage:
    """Return the storage that `storage` names, by default a journal in `out`. Raises `ConfigError` for other texts."""
    if storage is None:
        return Journal(out / NAME, say)
    if storage.startswith(("postgresql:", "postgresql+", "postgres:")):
        return Postgres(storage.replace("postgres:", "postgresql:", 1) if storage.startswith("postgres:") else storage)
    if "://" in storage or not storage.strip() or _PAIRS.search(storage):
        raise ConfigError(
            f"--storage: {without_password(storage)!r} names neither a database nor a file; "
            f"write postgresql://USER:PASSWORD@HOST/DATABASE, or the path of a journal file"
        )
    return Journal(Path(storage), say)


def _refuse_a_grid(out: Path) -> None:
    if (out / "plan.json").exists():
        raise StoreError(f"{out} holds a grid of mclab ablate; give another folder with --out")


def _points(space: Space) -> list[RunConfig]:
    """Return the base's run and a run for each value of each choice: each may name a module of the user's own."""
    found = [space.base_point().runs[0]]
    for axis in space.axes:
        for value in axis.spec.values:
            try:
                found.append(space.point({axis.path: value}).runs[0])
            except ConfigError:
                continue
    return found

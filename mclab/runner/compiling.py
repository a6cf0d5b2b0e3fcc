"""Decide `--compile auto` for a command, and say where the compiler failed.

Compiling pays where a process trains many steps of few shapes: the time that it saves grows with the number of steps,
and the time that it takes grows with the number of shapes. Both are predicted from the constants below, measured on one
core of a CPU with an empty cache on disk.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from mclab.config.ids import shape_key
from mclab.config.options import AUTO, OFF, ON, RunOptions
from mclab.config.outcome import Outcome
from mclab.config.run import RunConfig
from mclab.kernels.compile_mode import missing
from mclab.runner.estimate import duration, in_training, step_calls
from mclab.runner.history import History

#: The predicted saving must be this many times the predicted time of compiling: the time of runs is predicted within a
#: factor of 2.5, and that of compiling rests on one measured model (the linear memory).
TIMES = 4.0
#: The share of a training step's time that compiling saves. Measured for the linear memory with GRM (`python -m
#: benchmarks compiled`), twice: 0.54 and 0.52 between the medians, 0.49 and 0.50 between the fastest steps.
#: For the forward pass of Titans alone it is 0.50.
SAVED = 0.45
#: Seconds to compile a graph on an idle core: START, and CALLS for each second that the operations of a step take to
#: start (`mclab.runner.estimate`). For the linear memory with GRM compiling took as long as 5,600 eager steps, 31 s by
#: the estimate; CALLS is from the numbers of C++ kernels in the forward pass: 17 there, 30 for delta, 39 for Titans.
START, CALLS = 20.0, 6200.0


def decided(
    options: RunOptions,
    runs: Iterable[RunConfig],
    total: float,
    processes: int,
    history: History,
    say: Callable[[str], None],
    *,
    sampled: bool = False,
) -> RunOptions:
    """The options with `on` or `off` in place of `--compile auto`; `say` gets one line that says which and why.

    `runs` are the first of about `total` runs, which train in `processes` processes, or with `sampled` a sample of
    them.
    """
    if options.compile != AUTO:
        return options
    if (why := _impossible(options, history)) is not None:
        say(f"--compile auto: off, since {why}")
        return replace(options, compile=OFF)
    saved, takes = worth(list(runs), total, processes, history, sampled)
    pays = saved >= TIMES * takes
    which = "on, since it saves" if pays else "off, since it would save"
    rule = "" if pays else f"; it must save {TIMES:g} times what it takes"
    say(f"--compile auto: {which} each process about {duration(saved)} and takes about {duration(takes)}{rule}")
    return replace(options, compile=ON if pays else OFF)


def _impossible(options: RunOptions, history: History) -> str | None:
    """Why a command does not compile, whatever its runs are; `None` where that depends on the runs."""
    if options.kernels == "triton":
        return "a compiled step has torch's forms, not --kernels triton"
    if history.device != "cpu":
        return "what it saves on a GPU is not measured"
    return None if options.scheduler else missing("cpu") or None


def worth(
    runs: list[RunConfig], total: float, processes: int, history: History, sampled: bool = False
) -> tuple[float, float]:
    """The seconds that compiling saves each process, and the seconds that it takes each process.

    A process compiles the graphs of every shape of which it gets a run. With `sampled`, a shape that occurs once in
    `runs` counts as new in each of the runs that it stands for.
    """
    numbers = Counter(shape_key(run) for run in runs)
    shapes = {shape_key(run): run for run in runs}
    share, saved, takes = total / max(1, len(runs)) / max(1, processes), 0.0, 0.0
    for key, run in shapes.items():
        own = numbers[key] * share
        saved += own * history.seconds(run) * in_training(run) * SAVED
        new = own if sampled and numbers[key] == 1 else min(1.0, own)
        takes += new * graphs(run) * (START + CALLS * step_calls(run))
    return saved, takes


def graphs(run: RunConfig) -> int:
    """The graphs that a run's training needs: one for each part of a mix, twice where a route has two phases."""
    phases = any(getattr(mixer, "route", None) == "annealed" for mixer in run.model.mixers if _chooses(mixer))
    return len(run.mix) * (2 if phases else 1)


def _chooses(mixer: object) -> bool:
    return getattr(mixer, "aggregate", None) == "ssc"


class Failures:
    """Passes one line to `say` for each reason why compiling failed, as the provenance of outcomes has it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._told = say, set[str]()

    def note(self, outcome: Outcome) -> None:
        """Say why the training of `outcome` was not compiled, or only in part, if that is not said yet."""
        reason = str(outcome.provenance.get("compiled", "")).partition("(")[2].removesuffix(")")
        if reason and reason not in self._told:
            self._told.add(reason)
            self._say(f"--compile: steps are eager, since compiling failed: {reason}")

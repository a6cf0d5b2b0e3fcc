"""Run folders to attack, made once for all inputs: a grid's, a search's, and one with a run half trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mclab.train.loop import _Training
from tests.attack.processes import ended
from tests.commands import TINY
from tests.sweep.bench import SPACE

#: A run that keeps a checkpoint at its fourth step of six.
HALF = (
    *("train", "task.vocab=16", "task.length=16", "task.pairs=[1, 2]", "model.dim=8", "model.layers=1"),
    *("model.mixer.segment=4", "train.steps=6", "train.batch=8", "train.checkpoint_every=4"),
    *("eval.valid=8", "eval.test=16", "eval.every=2", "--save-weights", "--device", "cpu", "--out", "runs/it"),
)
GRID = ("ablate", "--grid", "grid.yaml", "--workers", 1, "--save-weights", "--device", "cpu", "--out", "runs/it")
SEARCH = ("sweep", "--space", "space.yaml", "--workers", 1, "--trials", 3, "--device", "cpu", "--out", "runs/it")


@dataclass(frozen=True)
class Bases:
    """Folders as commands left them: `half` one that was interrupted, `whole` the same when it was not."""

    grid: Path
    search: Path
    half: Path
    whole: Path


def made(folder: Path) -> Bases:
    """Make them, each in a folder of its own below `folder`, by processes that are over when somebody reads them."""
    for name, words in (("grid", GRID), ("search", SEARCH), ("half", HALF), ("whole", HALF)):
        (place := folder / name).mkdir()
        (place / "grid.yaml").write_text(TINY)
        (place / "space.yaml").write_text(SPACE)
        code, err = ended(words, place, _interrupted if name == "half" else None)
        assert code == (130 if name == "half" else 0), err
    return Bases(*(folder / name / "runs/it" for name in ("grid", "search", "half", "whole")))


def _interrupted() -> None:
    """Before one that an interrupt ends at its fifth step."""
    step = _Training._step

    def stopped(self: Any, batch: Any, number: int) -> Any:
        if number == 5:
            raise KeyboardInterrupt
        return step(self, batch, number)

    _Training._step = stopped  # type: ignore[method-assign]

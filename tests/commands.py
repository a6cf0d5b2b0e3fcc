"""The command line as a user has it: in this process, or in one of its own."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

ROOT = Path(__file__).parents[1]
#: The console script beside the interpreter that runs the tests.
SCRIPT = Path(sys.executable).with_name("mclab")

#: A grid whose runs take a tenth of a second.
TINY = """
question: Does the gate matter?
base:
  task: {vocab: 16, length: 16, pairs: [1, 2]}
  model: {dim: 8, layers: 1, mixer: {segment: 4}}
  train: {steps: 4, batch: 8}
  eval: {valid: 8, test: 16, every: 2}
grid: {model.mixer.gate: [context, none]}
seeds: 0..1
"""
#: A grid of 500 cells with a choice among two.
BIG = """
grid:
  model.mixer.segment: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]
  model.dim: [8, 16, 24, 32, 40]
  train.weight_decay: [0, 0.1, 0.2, 0.3]
select: {over: {train.lr: [3.0e-3, 1.0e-2]}, seeds: 2}
seeds: 0..4
"""
VERBS = (
    "ablate",
    "reproduce",
    "sweep",
    "train",
    "table",
    "plot",
    "report",
    "list",
    "show",
    "compare",
    "sample",
    "keys",
    "check",
    "doctor",
)
#: The tiny grid's first cell as overrides of `mclab train`.
SMALL = (
    *("task.vocab=16", "task.length=16", "task.pairs=[1, 2]", "model.dim=8", "model.layers=1"),
    *("model.mixer.segment=4", "train.steps=4", "train.batch=8", "eval.valid=8", "eval.test=16", "eval.every=2"),
)


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as strict JSON: no NaN, no infinity, nothing beside it."""
        return json.loads(self.out, parse_constant=_no_number)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def mclab(*words: object) -> Done:
    """Run a command in this process; lets through whatever is no plain end of it."""
    from mclab.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    argv = patch.object(sys, "argv", ["mclab", *map(str, words)])
    with argv, redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return Done(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]


def fine(*words: object) -> Done:
    """As `mclab`, for a command that must succeed."""
    done = mclab(*words)
    assert done.code == 0, done.err
    return done


def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process draw nothing: that takes longer than to train the tiny grid."""
    monkeypatch.setattr("mclab.report.plot.kinds.write_plots", lambda *_, **__: [])


def one_line(done: Done, *pieces: str) -> None:
    """A fault of the user: exit code 2, one line that holds the pieces, nothing on standard output."""
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    assert all(piece in done.err for piece in pieces), done.err


@contextmanager
def started(*words: object, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own; killed if the test ends before it."""
    command = [str(SCRIPT), *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def grid_file(folder: Path, text: str = TINY, name: str = "tiny.yaml") -> Path:
    """A grid in a file."""
    path = folder / name
    path.write_text(text)
    return path


def with_grid(text: str) -> str:
    """The tiny grid with other rows."""
    return TINY.replace("grid: {model.mixer.gate: [context, none]}", text)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder with its bytes, to see that nothing was written."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def records(out: Path) -> dict[str, dict[str, Any]]:
    """The stored records by run id."""
    return {path.stem: json.loads(path.read_text()) for path in (out / "records").glob("*.json")}

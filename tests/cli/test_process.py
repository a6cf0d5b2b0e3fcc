"""A command as a process: what it imports, who reads it, what interrupts it."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mclab.cli.output import result_json
from mclab.config.ids import run_id
from tests.commands import BIG, SCRIPT, TINY, VERBS, fine, grid_file, mclab, records, started, with_grid
from tests.stored import done as ended

LIGHT = """
import contextlib, io, sys
from mclab.cli import main
for words in {commands!r}:
    sys.argv = ["mclab", *words]
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.suppress(SystemExit):
        main()
print(sorted({heavy!r} & set(sys.modules)))
"""
HEAVY = {"torch", "numpy", "optuna", "dask", "distributed", "polars", "matplotlib", "scipy", "rich"}


WAITING = """
import contextlib, os, sys
from mclab.cli import main
sys.argv = ["mclab", "--version"]
with contextlib.suppress(SystemExit):
    main()
print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
"""


@pytest.mark.parametrize(("given", "waits"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_wait_without_spinning_unless_the_user_says_so(
    given: str | None, waits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set before torch is loaded, or it is not heard."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"{waits} False"


def test_help_and_a_dry_run_import_nothing_heavy(here: Path) -> None:
    grid_file(here, BIG, "big.yaml")
    dry = ["ablate", "--grid", "big.yaml", "--dry-run"]
    for commands, heavy in (
        ([["--help"]], HEAVY | {"yaml", "mclab.config.strict"}),
        ([[verb, "--help"] for verb in VERBS], HEAVY | {"yaml", "mclab.config.strict"}),
        ([dry, [*dry, "--json"], ["keys"], ["train", "--dry-run"]], HEAVY),
    ):
        code = LIGHT.format(commands=commands, heavy=heavy)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[]\n", commands[0]


def test_python_runs_the_package_as_the_command() -> None:
    for words, code in ((["keys", "--help"], 0), (["tabel"], 2)):
        both = [
            subprocess.run([*program, *words], capture_output=True, text=True, check=False)
            for program in ([SCRIPT], [sys.executable, "-m", "mclab"])
        ]
        assert both[0].returncode == code
        script, package = ((each.returncode, each.stdout, each.stderr) for each in both)
        assert script == package


@pytest.mark.parametrize(
    ("words", "hows"),
    [
        ("keys", ("| head -1", "| true", ">&-", "> /dev/full")),
        ("list FOLDER", ("| true", "> /dev/full")),
        ("ablate --grid tiny.yaml --dry-run", ("| head -1", ">&-")),
        ("--help", ("| true", ">&-")),
    ],
)
def test_a_reader_may_leave_and_a_full_disk_is_one_line(
    here: Path, finished: Path, words: str, hows: tuple[str, ...]
) -> None:
    command = f"{SCRIPT} {words.replace('FOLDER', str(finished))}"
    for how in hows:
        line = f"{command} {how}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], cwd=here, capture_output=True, text=True, check=False)
        expected = (2, ["standard output: no space left on device"]) if "full" in how else (0, [])
        said = [text for text in done.stderr.splitlines() if " runs in " not in text]
        assert (done.returncode, said) == expected, how


def test_json_is_alone_on_standard_output_and_strict(here: Path, finished: Path) -> None:
    diverging = with_grid("grid: {train.lr: [0.01, 1.0e+30]}")
    grid_file(here, diverging, "diverging.yaml")
    done = mclab("ablate", "--grid", "diverging.yaml", "--workers", 1, "--json")
    assert done.code == 3
    assert (done.json["stored"], done.json["missing"]) == ({"done": 2, "diverged": 2}, 0)
    assert [cell["status"] for cell in done.json["cells"]] == ["2 done", "2 diverged"]
    for words in (["list", "runs/diverging"], ["table", "runs/diverging"], ["keys"], ["sample"]):
        assert isinstance(fine(*words, "--json").json, list)
    with pytest.raises(ValueError, match="not JSON compliant"):
        result_json({"loss": float("nan")})
    lost = [row for row in fine("list", "runs/diverging", "--json").json if row["status"] == "diverged"]
    assert {(row["test_accuracy"], row["diverged_step"] > 0) for row in lost} == {(None, True)}


def test_odd_bytes_in_a_name_are_printed_somehow(here: Path) -> None:
    words = ("ablate", "--grid", "tiny.yaml", "--out", "runs/n\udcff", "--dry-run")
    assert r"runs/n\xff" in fine(*words).out
    assert json.loads(fine(*words, "--json").out)["out"] == "runs/n\udcff"


# ---- what interrupts ----


def still_there(group: int) -> list[str]:
    """Processes of a group that are not dead."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] not in "ZX":
                found.append(stat.parent.name)
    return found


@pytest.mark.parametrize(
    ("workers", "number", "code", "word"),
    [
        pytest.param(1, signal.SIGINT, 130, "interrupted", marks=pytest.mark.product),
        (2, signal.SIGINT, 130, "interrupted"),
        (1, signal.SIGTERM, 143, "terminated"),
        pytest.param(2, signal.SIGTERM, 143, "terminated", marks=pytest.mark.product),
    ],
)
def test_an_interrupt_ends_it_at_once_and_says_how_to_go_on(
    here: Path, workers: int, number: int, code: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid_file(here, TINY.replace("steps: 4", "steps: 300").replace("every: 2", "every: 300"))
    words = ["ablate", "--grid", "tiny.yaml", "--workers", str(workers), "--out", "two words", "--seeds", "0..4"]
    with started(*words, folder=here) as process:
        while not records(here / "two words") and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    stored = set(records(here / "two words"))
    assert (process.returncode, out) == (code, ""), err
    while still_there(process.pid):  # multiprocessing's own tracker goes a moment after its parent
        time.sleep(0.02)
    assert err.endswith(f"{word}; to continue: mclab {' '.join(words).replace('two words', repr('two words'))}\n")
    assert f"{len(stored)} stored now, {10 - len(stored)} missing\n" in err
    assert "Traceback" not in err
    assert "leaked" not in err
    trained = spy(monkeypatch)
    assert f"this command: {10 - len(stored)} done; {len(stored)} stored before" in fine(*words, "--workers", 1).err
    assert len(trained) == 10 - len(stored)
    assert not stored & set(trained)


def spy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the runs that are trained from now on; they learn nothing."""
    trained: list[str] = []

    def train_pack(runs, *, device, progress=None, keep=None):
        trained.extend(map(run_id, runs))
        return [ended(run) for run in runs]

    monkeypatch.setattr("mclab.train.train_pack", train_pack)
    return trained

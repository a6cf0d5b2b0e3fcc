"""The verbs together: their help, and terminals that lack signs."""

import os
import re
import subprocess
from pathlib import Path

from tests.commands import SCRIPT, VERBS, fine, mclab, records


def test_help_of_every_verb() -> None:
    for verb in VERBS:
        done = fine(verb, "--help")
        assert done.out.startswith(f"Usage: mclab {verb} ")
        assert done.err == ""
    verbs = fine("--help").out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in verbs] == list(VERBS)
    assert all(line.endswith(".") and not line.endswith("...") for line in verbs), "cut to fit 80 columns"
    assert fine("--version").out.count(".") == 2
    bare = mclab()
    assert (bare.code, bare.out) == (2, "")
    assert "Commands:" in bare.err


def test_signs_that_a_terminal_lacks_are_spelled_plainly(finished: Path) -> None:
    def shown(*words: str) -> tuple[str, str]:
        done = subprocess.run(
            [SCRIPT, *words], env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
        )
        return done.stdout.decode("ascii"), done.stderr.decode("ascii")

    text, _ = shown("table", str(finished))
    assert re.search(r"\d\.\d{3} \+- \d\.\d{3} \(2\)", text)
    assert "±" in fine("table", finished).out
    (name, *_) = records(finished)
    run, _ = shown("show", name, str(finished))
    assert re.search(r"^  accuracy  [0-9]{2}  \d", run, re.M)
    more = ("--grid", str(finished / "grid.yaml"), "--out", str(finished), "--seeds", "0..2", "--dry-run")
    for told in (text, run, *shown("ablate", *more)):
        assert "\\" not in told

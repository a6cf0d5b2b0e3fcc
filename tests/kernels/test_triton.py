"""The Triton kernels without a GPU: run by Triton's interpreter, and compiled ahead of time, in processes of their own.

The interpreter is on or off for a whole process, by TRITON_INTERPRET.
"""

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest

from tests.kernels import interpreted

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
#: What is compiled in `make test`: of every family, kernels of an fp32 run or a bf16 run.
QUICK = (
    *("flash_grm bf16 64 8", "first_backward depth fp32 16 titans", "reads depth bf16 32 titans"),
    *("states_backward erasing bf16 32 gated_delta", "flash_ssc rows_backward bf16 64 2 8"),
)


def said(module: str, *words: str, interpret: bool) -> list[dict]:
    """The lines of JSON that a process prints; what it says otherwise is shown where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    made = subprocess.run(
        [sys.executable, "-m", module, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return [json.loads(line) for line in made.stdout.splitlines() if line.startswith("{")]


@cache
def interpret(quick: bool) -> dict[str, str]:
    """What is wrong with each case; all cases share one process, which costs less than a process each."""
    lines = said("tests.kernels.interpreted", "quick" if quick else "all", interpret=True)
    return {line["case"]: line["wrong"] for line in lines}


@pytest.mark.parametrize("case", [name for name, _ in interpreted.cases(quick=True)])
def test_the_interpreter_computes_what_torch_does(case: str) -> None:
    assert interpret(True)[case] == ""


@pytest.mark.product
@pytest.mark.parametrize("case", [name for name, _ in interpreted.cases(quick=False)])
def test_the_interpreter_computes_what_torch_does_in_every_case(case: str) -> None:
    assert interpret(False)[case] == ""


def check_compiled(rows: list[dict]) -> None:
    """A kernel fits on its device, keeps its numbers in registers, and multiplies as it was told to."""
    assert rows
    for row in rows:
        name = " ".join(str(row[key]) for key in ("kernel", "run", "width", "case", "target"))
        assert row["shared"] <= row["most_shared"], name
        if row["run"] == "fp32":
            assert "tf32" not in row["products"], name
        else:
            assert row["products"], f"{name}: no tensor core"
        if not row["may_spill"]:
            assert row["spilled"] == 0, f"{name}: {row['spilled']} bytes spilled"


def test_kernels_compile_for_gpus_that_are_not_here() -> None:
    rows = said("benchmarks.compile", "--json", *QUICK, interpret=False)
    assert {row["target"] for row in rows} == {"sm_80", "sm_90"}
    check_compiled(rows)


@pytest.mark.product
def test_every_kernel_compiles_for_gpus_that_are_not_here() -> None:
    check_compiled(said("benchmarks.compile", "--json", interpret=False))

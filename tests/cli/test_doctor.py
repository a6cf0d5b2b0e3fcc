"""mclab doctor: the machine, and what a missing piece costs."""

import re
from importlib import import_module, metadata
from importlib.metadata import PackageNotFoundError

import pytest

from tests.commands import fine, mclab


def test_doctor_reads_the_machine() -> None:
    text = fine("doctor").out
    assert [line for line in text.splitlines() if line[:1].strip()] == [
        *(
            "versions",
            "devices",
            "kernels",
            "machine",
            "disk",
            "optional",
            "everything that mclab needs is installed and works",
        ),
    ]
    assert max(map(len, text.splitlines())) < 160
    assert "does not exist yet, but can be made" in text
    kernels = " ".join(text.split())
    assert "torch linear, dla, titans, delta, gated_delta (Triton needs" in kernels
    assert "torch every other rule (mclab has no Triton kernel for it)" in kernels
    assert re.search(r"--compile (possible, with /\S+|not possible no C\+\+ compiler is found)", kernels)
    facts = fine("doctor", "--json").json
    whole = "linear, dla, titans, delta, gated_delta (Triton needs a CUDA device, not cpu)"
    assert whole in [fact["value"] for fact in facts]
    assert {"torch", "polars", "cpu", "cores", "free"} <= {fact["name"] for fact in facts}


def test_doctor_says_what_a_missing_option_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"optuna", "psycopg", "cmaes"} <= {fact["name"] for fact in fine("doctor", "--json").json}

    def version(name: str) -> str:
        if name == "cmaes":
            raise PackageNotFoundError(name)
        return real(name)

    def load(name: str) -> object:
        if name == "psycopg":
            raise ImportError("no pq wrapper available")
        return import_module(name)

    real = metadata.version
    monkeypatch.setattr("mclab.verbs.doctor.version", version)
    monkeypatch.setattr("mclab.verbs.doctor.import_module", load)
    lines = fine("doctor").out.splitlines()
    assert any(
        re.match("  -  cmaes +missing +mclab sweep --sampler cmaes does not work; pip install cmaes$", x) for x in lines
    )
    assert any(
        re.match(r"  -  psycopg +3\.\S+, but it cannot be imported +mclab sweep --storage postgresql", x) for x in lines
    )


def test_doctor_fails_where_something_needed_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mclab.verbs.doctor.requires", lambda _: ["nothing-of-that-name>=1", "pydantic>=99", "tqdm>=4"])
    done = mclab("doctor")
    assert done.code == 2
    assert "  !  nothing-of-that-name  missing" in done.out
    assert "mclab needs pydantic>=99" in done.out
    assert done.out.endswith("2 do not work: mend the lines marked with !\n")

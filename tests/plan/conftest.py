"""Grids as text, read from a file as a user's are."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.grid import load_plan
from mclab.plan.plan import Plan

Make = Callable[..., Plan]
Fault = Callable[..., str]


@pytest.fixture
def plan(tmp_path: Path) -> Make:
    """`plan(text, *overrides, seeds=..., smoke=...)`: the plan of a file g.yaml that holds `text`."""

    def make(text: str, *overrides: str, **options: Any) -> Plan:
        path = tmp_path / "g.yaml"
        path.write_text(dedent(text))
        return load_plan(path, overrides, **options)

    return make


@pytest.fixture
def fault(plan: Make, tmp_path: Path) -> Fault:
    """The message that `plan` fails with, the folder's name left out."""

    def make(text: str, *overrides: str, **options: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            plan(text, *overrides, **options)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return make

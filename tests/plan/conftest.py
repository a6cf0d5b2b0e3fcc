"""Grids as text, read from a file as a user's are."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.grid import load_plan
from mclab.plan.plan import Plan

Make = Callable[..., Plan]
Fault = Callable[..., str]
Loaded = TypeVar("Loaded")


@pytest.fixture
def plan(tmp_path: Path) -> Make:
    """`plan(text, *overrides, seeds=..., smoke=...)`: the plan of a file g.yaml that holds `text`."""
    return loading(load_plan, tmp_path / "g.yaml")


def loading(load: Callable[..., Loaded], path: Path) -> Callable[..., Loaded]:
    """`load` of a file that holds a text, with overrides."""

    def make(text: str, *overrides: str, **options: Any) -> Loaded:
        path.write_text(dedent(text))
        return load(path, overrides, **options)

    return make


@pytest.fixture
def fault(plan: Make, tmp_path: Path) -> Fault:
    """The message that `plan` fails with, the folder's name left out."""

    return fault_of(plan, tmp_path)


def fault_of(load: Callable[..., object], folder: Path) -> Fault:
    """The message that `load` fails with, the folder's name left out."""

    def make(text: str, *overrides: str, **options: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            load(text, *overrides, **options)
        return str(caught.value).replace(f"{folder}/", "")

    return make

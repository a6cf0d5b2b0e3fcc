"""A module's dotted path alone stands for the mapping that names it, wherever a mixer stands."""

from typing import Any

import pytest

from mclab.config.ids import run_id
from mclab.config.parse import parse_run
from mclab.config.run import RunConfig
from mclab.config.strict import ConfigError
from mclab.plan.grid import plan_from
from mclab.plan.plan import Plan
from tests.own_modules import GOOD, own

__all__ = ["own"]

PATH = "own_mixers.Mean"
LONG = {"name": "module", "module": PATH}


def mixers(plan: Plan) -> dict[str, RunConfig]:
    """A run of each row."""
    return {cell.name: next(iter(cell.candidates[0].runs.values())) for cell in plan.cells}


def test_the_path_alone_is_the_same_run() -> None:
    short, long = (parse_run({"model": {"mixer": mixer}}) for mixer in (PATH, LONG))
    assert short == long
    assert run_id(short) == run_id(long)


@pytest.mark.parametrize("way", ["base", "grid", "changes", "override"])
def test_wherever_a_mixer_stands(own: Any, way: str) -> None:
    own(GOOD)
    plans = []
    for mixer in (PATH, LONG):
        data: dict[str, Any] = {
            "base": {"base": {"model": {"mixer": mixer}}},
            "grid": {"grid": {"model.mixer": [mixer, "attention"]}},
            "changes": {"changes": {"base": {}, "mine": {"model.mixer": mixer}}},
            "override": {},
        }[way]
        word = PATH if mixer == PATH else f"{{name: module, module: {PATH}}}"
        overrides = [f"model.mixer={word}"] if way == "override" else []
        plans.append(plan_from(data, "g", overrides))
    first, second = ([run_id(run) for run in mixers(plan).values()] for plan in plans)
    assert first == second
    assert any(
        run.model.mixer == parse_run({"model": {"mixer": LONG}}).model.mixer for run in mixers(plans[0]).values()
    )


def test_a_row_is_named_after_it_and_its_keys_can_be_varied(own: Any) -> None:
    own(GOOD)
    assert "Mean" in "".join(mixers(plan_from({"grid": {"model.mixer": [PATH, "attention"]}}, "g")))
    data = {"base": {"model": {"mixer": PATH}}, "grid": {"model.mixer.args": [{"decay": 0.5}, {"decay": 0.9}]}}
    assert [run.model.mixer.args for run in mixers(plan_from(data, "g")).values()] == [("decay=0.5",), ("decay=0.9",)]  # type: ignore[union-attr]


def test_a_wrong_path_is_told_as_in_the_mapping(own: Any) -> None:
    own(GOOD)
    with pytest.raises(ConfigError, match=r"model\.mixer\.module: own_mixers\.py has no Maen; did you mean Mean\?"):
        plan_from({"base": {"model": {"mixer": "own_mixers.Maen"}}}, "g")
    with pytest.raises(ConfigError, match=r"model\.pattern: .*own_mixers\.Mean"):
        parse_run({"model": {"pattern": [PATH, "mixer"]}})

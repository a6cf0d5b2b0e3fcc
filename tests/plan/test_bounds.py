"""What a file may hold: values that aliases repeat, levels, whole numbers, cells, runs. All else is a line, at once."""

from collections.abc import Callable
from typing import Any

import pytest

from mclab.config.strict import ConfigError
from mclab.plan.grid import load_plan, plan_from
from mclab.plan.loader import load_text
from mclab.plan.overrides import parse_overrides, seeds_from_text
from mclab.plan.space_load import load_space
from mclab.plan.yaml_check import MOST_LEVELS

LONG = "9" * 400


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as wrong:
        make()
    (line,) = str(wrong.value).splitlines()
    assert len(line) < 300
    return line


def grid(text: str) -> str:
    return refused(lambda: load_plan("g.yaml", content=text.encode()))


def nest(levels: int, first: str, more: str, last: str) -> str:
    """`levels` anchors, each of nine aliases of the one before."""
    lines = [f"a0: &a0 {first}"]
    for level in range(1, levels):
        nine = [f"*a{level - 1}"] * 9
        keyed = ", ".join(f"k{number}: {alias}" for number, alias in enumerate(nine))
        lines.append(f"a{level}: &a{level} " + more.format(items=", ".join(nine), keyed=keyed))
    return "\n".join([*lines, last.format(f"*a{levels - 1}")])


@pytest.mark.parametrize(
    ("first", "more"),
    [
        ("[1, 2, 3, 4, 5, 6, 7, 8, 9]", "[{items}]"),
        ("{model.dim: 8}", "{{{keyed}}}"),
        ("{model.dim: 8}", "{{<<: [{items}]}}"),
    ],
)
@pytest.mark.parametrize("last", ["grid: {{model.dim: {}}}", "base: {}", "question: {}", "exclude: {}", "seeds: {}"])
def test_aliases_that_multiply(first: str, more: str, last: str) -> None:
    line = grid(nest(10, first, more, last))
    assert "values when every alias is written out, but at most 1,000,000 are allowed" in line
    assert "there are " in line


def test_aliases_of_a_space_and_of_the_command_line() -> None:
    bomb = nest(10, "[1, 2]", "[{items}]", "space: {{train.lr: {}}}")
    assert "every alias" in refused(lambda: load_space("s.yaml", content=bomb.encode()))
    inner = "[&a [1, 1, 1, 1, 1, 1, 1, 1, 1]" + "".join(
        f", &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "every alias" in refused(lambda: parse_overrides([f"model.dim={inner}]"]))


def test_an_alias_used_often_is_no_fault_and_its_keys_have_lines() -> None:
    uses = "\n".join(f"k{number}: *x" for number in range(500))
    data, source = load_text(f"x: &x\n  y: {list(range(1000))}\n{uses}\nz: 1\n", "g.yaml")
    assert data["k499"] is data["x"]
    assert (source.at("x.y"), source.at("k3.y"), source.at("z")) == ("g.yaml:2", "g.yaml:6", "g.yaml:503")


@pytest.mark.parametrize("text", ["[" * 200 + "]" * 200, "{a: " * 200 + "1" + "}" * 200])
def test_deep_nesting(text: str) -> None:
    assert "the nesting is too deep" in grid(f"base: {{model.mixer: {text}}}")


def test_nesting_through_aliases() -> None:
    ten = "[" * 10 + "{}" + "]" * 10
    lines = [f"a0: &a0 {ten.format(1)}", *(f"a{n}: &a{n} {ten.format(f'*a{n - 1}')}" for n in range(1, 9))]
    assert f"at most {MOST_LEVELS} levels are allowed" in grid("\n".join(lines))


@pytest.mark.parametrize("number", [str(2**63), LONG, f"-{LONG}", "0x" + "f" * 400, "9" * 6000])
@pytest.mark.parametrize(
    ("text", "path", "bound"),
    [
        ("base: {{model.dim: {}}}", "base.model.dim", "int >= 1, <= 65536"),
        ("base:\n  train:\n    steps: {}", "base.train.steps", "int >= 1, <= 100000000"),
        ("grid: {{train.batch: [8, {}]}}", "grid.train.batch.1", "int >= 1, <= 1048576"),
        ("changes: {{a: {{eval.every: {}}}}}", "changes.a.eval.every", "int >= 1, <= 100000000"),
        ("exclude: [{{model.dim: {}}}]", "exclude.0.model.dim", "int >= 1, <= 65536"),
        ("base: {{train.lr: {}}}", "base.train.lr", "whole numbers must be below 9223372036854775808 in size"),
        ("seeds: [{}]", "seeds.0", "whole numbers must be below 9223372036854775808 in size"),
        (
            "select: {{over: {{train.lr: [0.1]}}, seeds: {}}}",
            "select.seeds",
            "whole numbers must be below 9223372036854775808",
        ),
    ],
)
def test_whole_numbers_that_no_table_holds(text: str, path: str, bound: str, number: str) -> None:
    line = grid(text.format(number))
    assert line.startswith("g.yaml:")
    assert f": {path}: " in line
    assert bound in line
    assert number[:10] in line


def test_they_are_refused_in_a_space_an_override_and_seeds() -> None:
    for text in (f"space: {{model.dim: {{low: 8, high: {LONG}}}}}", f"space: {{model.dim: [8]}}\nrepeats: {LONG}"):
        assert "(400 digits)" in refused(lambda text=text: load_space("s.yaml", content=text.encode()))
    line = refused(lambda: parse_overrides([f"model.dim={LONG}"]))
    assert line.endswith("...: model.dim: must be int >= 1, <= 65536, got 99999999999999999... (400 digits)")
    assert refused(lambda: seeds_from_text(LONG)).startswith("--seeds: ")
    assert refused(lambda: seeds_from_text(f"0..{'9' * 6000}")).startswith("--seeds: must be a range")


def test_the_largest_whole_number_is_read() -> None:
    assert load_text(f"a: [{2**63 - 1}, -{2**63 - 1}]", "g.yaml")[0] == {"a": [2**63 - 1, 1 - 2**63]}


VALUES = [number / 10 for number in range(1, 1001)]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            {"grid": {"train.lr": VALUES, "train.clip": VALUES}},
            "grid: there would be 1000000 cells, but at most 20000 are allowed",
        ),
        (
            {"changes": {str(n): {} for n in range(30_000)}},
            "changes: there would be 30000 cells, but at most 20000 are allowed",
        ),
        ({"runs": [{}] * 30_000}, "runs: there would be 30000 cells, but at most 20000 are allowed"),
        (
            {"zip": {"train.lr": [1.0] * 30_000}},
            "zip.train.lr: there would be 30000 values, but at most 20000 are allowed",
        ),
        ({"exclude": [{}] * 30_000}, "exclude: there are 30000 conditions, but at most 1000 are allowed"),
        (
            {"select": {"over": {"train.lr": VALUES, "train.clip": VALUES}}},
            "select.over: there would be 1000000 candidates, but at most 20000 are allowed",
        ),
        (
            {"grid": {"train.lr": VALUES}, "seeds": "0..999"},
            "grid: there would be 1000000 runs (1000 cells x 1000 seeds), but at most 200000 are allowed",
        ),
    ],
)
def test_more_than_anybody_reads(data: dict[str, Any], told: str) -> None:
    assert refused(lambda: plan_from(data, "g")).endswith(told)


def test_steps_finer_than_any_are_refused() -> None:
    text = b"space: {train.lr: {low: 1.0e-3, high: 1.0e+30, step: 1.0e-300}}"
    assert "makes more than 1000000000 steps" in refused(lambda: load_space("s.yaml", content=text))

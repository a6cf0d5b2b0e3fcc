"""The pages: links lead somewhere, and the page of equations explains every value that a config key takes."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml

from mclab.config.fields import OneOf
from mclab.config.keys import sections
from mclab.config.model.attention import PRESETS
from mclab.memories import MEMORIES
from mclab.tasks import TASKS
from tests.commands import ROOT

PAGE = ROOT / "docs" / "equations.md"
#: The pages for people.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "sweeps/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "mclab" / "kernels" / "README.md",
]
#: Where references stand.
FILES = [path for room in ("mclab", "tests", "benchmarks", "docs") for path in (ROOT / room).rglob("*")]
TEXTS = [path for path in [ROOT / "README.md", *FILES] if path.suffix in (".py", ".md")]
REFERENCE = re.compile(r"equations\.md#([\w-]+)")
#: The heading under which the words of a key are explained.
SECTIONS = {
    "model.position": "positions",
    "model.mixer.name": "other-mixers",
    "model.mixer.memory": "memories",
    "model.mixer.decay_to": "forgetting",
    "model.mixer.memory_norm": "depth-and-norm",
    "model.mixer.segmentation": "segments",
    "model.mixer.aggregate": "aggregation",
    "model.mixer.gate": "gate",
    "model.mixer.gate_activation": "activation",
    "model.mixer.connector": "connector",
    "model.mixer.init": "init",
    "model.mixer.pool": "pool",
    "model.mixer.pool_of": "pool",
    "model.mixer.route": "route",
    "model.mixer.hybrid": "hybrids",
    "model.mixer.rule": "log-linear-attention",
    "task.name": "tasks",
    "task.filler": "mqar",
    "task.spread": "mqar",
    "task.loss": "ar",
    "task.preset": "niah",
    "task.haystack": "niah",
    "task.key": "niah",
    "task.value": "niah",
}


def headings(text: str) -> Iterator[tuple[int, str, int]]:
    """Level, title and line of each heading; what stands between fences is none."""
    fenced = False
    for number, line in enumerate(text.splitlines()):
        fenced ^= line.startswith("```")
        if not fenced and (found := re.match(r"(#{1,6}) +(.+?) *$", line)):
            yield len(found[1]), found[2], number


def anchors(text: str) -> dict[str, tuple[int, int]]:
    """Level and line of each heading by the anchor that GitHub gives it: lower case, no punctuation, dashes."""
    made: dict[str, tuple[int, int]] = {}
    for level, title, line in headings(text):
        plain = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        again = sum(1 for anchor in made if re.fullmatch(rf"{re.escape(plain)}(-\d+)?", anchor))
        made[f"{plain}-{again}" if again else plain] = (level, line)
    return made


def section(text: str, anchor: str) -> str:
    """What stands under a heading and the smaller ones after it."""
    level, first = anchors(text)[anchor]
    ends = [line for other, _, line in headings(text) if line > first and other <= level]
    return "\n".join(text.splitlines()[first : min(ends, default=None)])


def words(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    return [word for part in get_args(annotation) for word in words(part)]


def choices() -> dict[str, list[str]]:
    """The words that each key of a model or a task takes."""
    found: dict[str, list[str]] = {}
    for room in ("model", "model.mixer", "task"):
        for model in sections()[room].values():
            for key, info in model.model_fields.items():
                registries = (mark.names for mark in info.metadata if isinstance(mark, OneOf))
                if taken := words(info.annotation) + [word for registry in registries for word in registry]:
                    found.setdefault(f"{room}.{key}", []).extend(taken)
    found["model.mixer.name"].extend(PRESETS)
    return {path: taken for path, taken in found.items() if path != "model.mixer"}


def test_anchors_are_those_of_github() -> None:
    text = "# A\n## Queries, keys and `values`\n```sh\n# no heading\n```\n### `gated_delta`\n## A\n#### Ü – é (log-2)\n"
    assert list(anchors(text)) == ["a", "queries-keys-and-values", "gated_delta", "a-1", "ü--é-log-2"]
    assert section(text, "queries-keys-and-values").splitlines()[-1] == "### `gated_delta`"


def test_every_reference_leads_to_a_heading() -> None:
    there = anchors(PAGE.read_text())
    found = [(path, anchor) for path in TEXTS for anchor in REFERENCE.findall(path.read_text())]
    assert [(str(path.relative_to(ROOT)), anchor) for path, anchor in found if anchor not in there] == []


def test_code_refers_to_headings_in_one_form() -> None:
    """To a heading, never to the page as a whole, nor to a page that the repository does not hold."""
    whole, other = re.compile(r"docs/equations\.md(?!#[\w-])"), "equations".upper()
    code = {path: path.read_text() for path in TEXTS if path.suffix == ".py"}
    assert [str(path.relative_to(ROOT)) for path, text in code.items() if whole.search(text)] == []
    assert [str(path.relative_to(ROOT)) for path in TEXTS if other in path.read_text()] == []


@pytest.mark.parametrize("rule", [*MEMORIES, *TASKS])
def test_the_file_of_a_rule_or_a_task_names_its_heading(rule: str) -> None:
    folder = "memories" if rule in MEMORIES else "tasks"
    assert rule in REFERENCE.findall((ROOT / "mclab" / folder / f"{rule}.py").read_text())


def test_the_table_of_contents_holds_every_heading_once() -> None:
    text = PAGE.read_text()
    listed = re.findall(r"\]\(#([\w-]+)\)", section(text, "contents"))
    assert listed == [anchor for anchor, (level, _) in anchors(text).items() if level > 1 and anchor != "contents"]
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= set(anchors(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """To a file, and to a heading of it where they name one."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        if "://" not in target:
            assert there.exists(), target
            assert not anchor or anchor in anchors(there.read_text()), target


def test_the_table_of_pages_has_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w.]+\.md)\)", (ROOT / "docs" / "README.md").read_text()))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}


def test_the_citation_has_the_present_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])


def test_paths_in_the_equations_exist() -> None:
    named = re.findall(r"`((?:mclab|ablations|benchmarks|tests)/[\w/.-]+)`", PAGE.read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_key_that_takes_words_has_a_heading() -> None:
    assert set(choices()) == set(SECTIONS)


@pytest.mark.parametrize(("key", "anchor"), SECTIONS.items())
def test_every_word_of_a_key_is_explained(key: str, anchor: str) -> None:
    text = section(PAGE.read_text(), anchor)
    assert [word for word in choices()[key] if f"`{word}`" not in text] == []

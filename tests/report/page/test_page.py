"""The page of a run folder as a file: what it holds, how it is escaped, how large it is, what a bad folder gets."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mclab.config.strict import ConfigError
from mclab.report.page.grid import grid_page
from mclab.report.page.html import Source
from mclab.report.page.sweep import sweep_page
from mclab.report.prose.verdict import verdict
from mclab.report.table.summary import summarise
from tests.commands import ROOT, fine, mclab, one_line
from tests.report.plans import GATE, gates, make_plan, store
from tests.report.sweeps.trials import SEVERAL, study, weights

NASTY = "\"><script>alert(1)</script> 'q' <b> & &amp; | $x$ {{ 7*7 }} 😀 " + "long" * 50


class Reader(HTMLParser):
    """Tags with their attributes, and the text of each."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def page_of(plan, lookup, **more) -> Reader:
    return Reader(grid_page(plan, lookup, lambda run: [], Source(Path("runs/g"), **more)))


def test_it_says_what_the_terminal_says_and_holds_its_tables():
    given = gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0], [0.1, "diverged", 0.2])
    page = page_of(*given, commands=("mclab ablate --grid g.yaml",), dates=("2026-01-01", "2026-01-02"))
    summary = summarise(*given)
    assert all(line in page.text for line in verdict(summary))
    assert "none, seed 1: diverged at step 120." in page.text
    assert "0.800 ± 0.200 (3)" in page.text
    assert "2026-01-01 to 2026-01-02" in page.text
    assert "mclab ablate --grid g.yaml" in page.text
    assert "model.mixer.gate" in page.text
    downloads = [attrs["download"] for tag, attrs in page.tags if tag == "a" and "download" in attrs]
    assert downloads == ["table.csv", "runs.csv", "table.tex"]


def test_every_point_says_what_it_is():
    page = page_of(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0]))
    assert {f"input, seed {n}: {v}" for n, v in enumerate(("0.600", "0.800", "1.000"))} <= set(page.texts)
    assert "input: 0.800 ± 0.200 (3), 95 % [0.303, 1.000]" in page.texts


def test_texts_are_shown_as_they_are_and_nothing_of_them_is_run():
    names = [NASTY, "x" * 200, "a|b", "c & d"]
    plan = make_plan(
        [{}, {GATE: "input"}, {GATE: "none"}, {GATE: "context", "model.dim": 16}],
        range(3),
        names=names,
        question=NASTY,
        named=True,
        warnings=(NASTY,),
    )
    page = page_of(plan, store(plan, [[0.5, 0.6, 0.7]] * 4).get, commands=(f"mclab {NASTY}",), again="mclab x")
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not any(key.startswith("on") for _, attrs in page.tags for key in attrs)
    shown = " ".join(NASTY.split())
    assert page.text.count(shown) > 3
    assert all(name in page.text for name in names[1:])


def test_it_asks_for_nothing():
    page = page_of(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0]))
    addresses = [attrs[key] or "" for _, attrs in page.tags for key in ("href", "src", "xlink:href") if key in attrs]
    assert addresses
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "object", "embed", "base", "form")]


def test_ids_are_unique_and_every_link_leads_somewhere():
    page = page_of(*gates([0.5, 0.6, 0.7], [0.6, 0.8, 1.0]))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs[key] for _, attrs in page.tags for key in ("href", "xlink:href") if key in attrs]
    used = {link[1:] for link in links if link and link.startswith("#")}
    used |= set(re.findall(r"url\(#([^)]+)\)", " ".join(v for _, a in page.tags for v in a.values() if v)))
    assert used <= set(ids)


def test_a_search_has_its_trials_and_every_axis():
    found = study(*SEVERAL, importances=weights(gate=0.7, lr=0.2, k=0.1))
    page = Reader(sweep_page(found, [], Source(Path("runs/s"))))
    assert "What matters?" in page.text
    assert "Best of 4 distinct trials: trial 0, gate context" in page.text
    assert sum(attrs.get("class") == "plot" for tag, attrs in page.tags if tag == "figure") == 3


def test_three_hundred_rows_stay_small(large: bytes):
    assert len(large) < 6_000_000
    text = Reader(large).text
    assert "50 of 300 rows: the first, the 25 of highest and the 24 of lowest accuracy" in text


def test_a_folder_without_results_is_refused_in_a_line(here: Path):
    with pytest.raises(ConfigError, match="runs/g: no run has a result yet"):
        page_of(*gates([None, None, None], [None, None, None]))
    (here / "empty").mkdir()
    one_line(mclab("report", "empty"), "empty: this folder holds no plan.json and no trials.json")
    one_line(mclab("report", "nowhere"), "nowhere: there is no such run folder")
    one_line(mclab("report", "tiny.yaml"), "tiny.yaml: this is a file, not a run folder")
    paper = ROOT / "tests/fixture/paper"
    one_line(mclab("report", paper, "--out", "empty"), "--out: empty is a folder; give a file's name")


def test_the_command_writes_where_it_is_told(here: Path):
    done = fine("report", ROOT / "tests/fixture/paper", "--out", "pages/paper.html")
    assert done.out.strip() == "pages/paper.html"
    page = Reader((here / "pages/paper.html").read_bytes())
    assert "Beside the published table" in page.text
    assert "paper.csv" in [attrs.get("download") for _, attrs in page.tags]

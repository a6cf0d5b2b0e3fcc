"""The page in headless Chromium: it asks for nothing, tables sort and filter, plots are drawn, it fits a telephone."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mclab.report.page.grid import grid_page
from mclab.report.page.html import Source
from mclab.report.page.sweep import sweep_page
from mclab.store import Records
from tests.commands import ROOT
from tests.report.page.test_page import NASTY
from tests.report.plans import GATE, make_plan, store
from tests.report.plot.test_layout import look
from tests.report.sweeps.trials import SEVERAL, study, weights

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def grid() -> bytes:
    names = ["full", NASTY, *(f"row {n}" for n in range(10))]
    cells = [{}, {GATE: "input"}, *({"train.clip": 1.0 + n} for n in range(1, 11))]
    plan = make_plan(cells, range(3), names=names, named=True, question=NASTY)
    results = [[0.9, 0.91, 0.92], [0.5, "diverged", 0.6], *([n / 20, 0.3, 0.4] for n in range(10))]
    looks = [look(step, step / 400) for step in (100, 200, 300)]
    return grid_page(plan, store(plan, results).get, lambda run: looks, Source(Path("runs/g"), again="mclab x"))


def reproduction() -> bytes:
    records = Records(ROOT / "tests/fixture/paper")
    plan = records.plan()
    assert plan is not None
    return grid_page(plan, records.lookup, records.curve, Source(records.path))


def search() -> bytes:
    found = study(*SEVERAL, importances=weights(gate=0.7, lr=0.2, k=0.1))
    return sweep_page(found, [], Source(Path("runs/s")))


PAGES = {"grid": grid, "reproduction": reproduction, "search": search}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages")
    for name, make in PAGES.items():
        (path / f"{name}.html").write_bytes(make())
    return path


@contextmanager
def opened(browser: Any, path: Path, size: dict[str, int], scheme: str = "light") -> Iterator[Any]:
    """The page; at the end nothing may have been asked for but the file itself, and nothing said on the console."""
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    said, asked = list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append("a dialog"), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]


@pytest.mark.parametrize("name", PAGES)
def test_it_fits_asks_for_nothing_and_draws_every_plot(browser: Any, folder: Path, name: str) -> None:
    for size, shown, scheme in ((WIDE, "wide", "light"), (NARROW, "narrow", "dark")):
        with opened(browser, folder / f"{name}.html", size, scheme) as page:
            across = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert across == 0, size
            drawn = page.evaluate(
                "shown => [...document.querySelectorAll(`.plot .${shown} svg`)].map(svg => {"
                "const box = svg.getBoundingClientRect();"
                "return [box.width, box.height, svg.querySelectorAll('path').length]; })",
                shown,
            )
            assert len(drawn) >= 2
            assert all(width > 250 and height > 80 and paths > 5 for width, height, paths in drawn)


def column(table: Any, place: int) -> list[str]:
    return [
        row.locator("td, th").nth(place).inner_text() for row in table.locator("tbody tr").all() if row.is_visible()
    ]


def test_tables_sort_and_filter_by_keyboard(browser: Any, folder: Path) -> None:
    with opened(browser, folder / "grid.html", WIDE) as page:
        table = page.locator("#table table")
        before = column(table, 0)
        assert len(before) == 12
        head = table.locator("thead button").nth(1)
        head.focus()
        page.keyboard.press("Enter")
        values = [float(text.split(" ")[0]) for text in column(table, 1)]
        assert values == sorted(values)
        assert table.locator("thead th").nth(1).get_attribute("aria-sort") == "ascending"
        page.keyboard.press("Enter")
        values = [float(text.split(" ")[0]) for text in column(table, 1)]
        assert values == sorted(values, reverse=True)
        page.keyboard.press("Enter")
        assert column(table, 0) == before
        page.locator("#table input").fill("ROW 7")
        assert column(table, 0) == ["row 7"]
        assert page.locator("#table .count").inner_text() == "1 of 12 rows"


def test_a_table_s_foot_stays_where_it_is(browser: Any, folder: Path) -> None:
    with opened(browser, folder / "reproduction.html", WIDE) as page:
        for table in page.locator("table.sortable").all():
            rows = table.locator("tbody tr").count()
            table.locator("thead button").first.click()
            assert table.locator("tbody tr").count() == rows


def test_a_point_says_what_it_is_where_one_points_at_it(browser: Any, folder: Path) -> None:
    with opened(browser, folder / "grid.html", WIDE) as page:
        dots = page.locator("#plot-accuracy .wide svg use").all()
        tip = page.locator("#tip")
        assert not tip.is_visible()
        said = set()
        for dot in dots[:40]:
            dot.scroll_into_view_if_needed()
            box = dot.bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            if tip.is_visible():
                said |= set(tip.inner_text().split("\n"))
        assert any("seed 1: 0.910" in text for text in said), said


def test_names_stand_there_as_they_are(browser: Any, folder: Path) -> None:
    with opened(browser, folder / "grid.html", WIDE) as page:
        assert " ".join(page.locator("h1").inner_text().split()) == " ".join(NASTY.split())
        assert page.locator("#table tbody th").nth(1).text_content() == NASTY


def test_three_hundred_rows_are_drawn_whole(browser: Any, large: bytes, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    path.write_bytes(large)
    with opened(browser, path, WIDE) as page:
        assert page.locator("#table tbody tr").count() == 300

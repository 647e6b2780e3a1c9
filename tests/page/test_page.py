"""The page of a run: content, warnings about simulation, and display in a browser."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import pandas as pd
import pytest
from markupsafe import escape

from analysis.finished_cells import models_in_words, read_run
from analysis.frames import Results
from analysis.page import _LEAST, _spent, _use, grids, write
from analysis.registry import artefact
from harness.runner import layout
from harness.runner.config import methods
from harness.runner.layout import Cell
from harness.runner.preset import resolve
from harness.runner.results import SIMULATED_WARNING
from tests.analysis.by_hand import mcnemar
from tests.finished import BENCHMARK, REPORTS, preset

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def reports(finished: Path) -> Path:
    return finished / "reports" / "smoke"


@pytest.fixture(scope="module")
def text(reports: Path) -> str:
    return (reports / "index.html").read_text()


def values(text: str, attribute: str) -> list[str]:
    return re.findall(rf' {attribute}="([^"]*)"', text)


def test_it_holds_every_artefact_and_its_links_lead_to_something(text: str, reports: Path) -> None:
    ids, links = values(text, "id"), values(text, "href")
    assert len(ids) == len(set(ids))
    for link in [link for link in links if not link.startswith(("data:", "https://", "http://"))]:
        assert (link[1:] in ids) if link.startswith("#") else (reports / link).is_file(), link
    for name in REPORTS:
        assert artefact(name).title in text
        files = {path.name for path in reports.glob(f"{name}.*")}
        assert files & set(links) == files - {f"{name}.html"}
    assert len([link for link in links if link.startswith("#mini-HumanEval-")]) >= len(preset().cells())
    # The main table has a row for every method, and each of its numbers is shown.
    table = (reports / "main_table.md").read_text().partition("\n- ")[0]
    assert [key for key in preset().methods if f"\n| {methods()[key].title} |" not in table] == []
    numbers = re.findall(r"\d+\.\d\d", table)
    assert set(numbers) <= set(re.findall(r"\d+\.\d\d", text))
    assert all(source.startswith("data:image/svg+xml;base64,") for source in values(text, "src"))
    # What is not made is named, and one command makes all of it.
    assert "One method against every other row on the same questions" in text
    assert "snakemake --cores all reports/smoke/index.html" in text


def test_simulation_is_said_first_and_beside_every_artefact(text: str) -> None:
    head, _, body = text.partition("<body>")
    assert SIMULATED_WARNING in head
    assert "<title>SIMULATED: " in head
    assert body.index(SIMULATED_WARNING) < body.index("<h1>")
    # The banner above, and the claims.
    assert body.count(f"{SIMULATED_WARNING}.") == 1 + len(REPORTS) + 1


def test_it_runs_no_script_and_asks_nobody(text: str) -> None:
    assert not re.search(r"<(script|iframe|object|form)\b|<[^>]* on\w+=", text)
    (policy,) = [value for value in values(text, "content") if "default-src" in value]
    assert "default-src 'none'" in policy
    assert "script" not in policy


@pytest.fixture
def place(finished: Path, folder: Path) -> Path:
    """Work in a copy of the results, which the test may change."""
    return shutil.copytree(finished / "results", folder / "results", dirs_exist_ok=True)


@pytest.fixture
def results(place: Path) -> Results:
    """Load the cells of the main table."""
    return artefact("main_table").results(preset())


def test_every_question_has_a_mark_by_row_and_opens_to_gold_answers_and_two_replies(results: Results) -> None:
    (grid,) = grids(results, 10**6)
    whole = "".join(html for questions in grid.groups.values() for html in questions)
    assert len(grid.heads) == len(results.cells)
    assert whole.count('<i class="right">') == sum(cell.items["correct"].sum() for cell in results.cells)
    assert sum(map(len, grid.groups.values())) == grid.n == 3
    for right, questions in grid.groups.items():
        assert all(html.count('<i class="right">') == right for html in questions)
    rows = (("gmr", "pool", BENCHMARK), ("single", "qwen-2.5-14B", BENCHMARK))
    gmr, single = (results.cells_by_row[row][0].items for row in rows)
    assert all(escape(text) in whole for items in (gmr, single) for text in items["text"])
    alone = [{*of.values()} for of in grid.alone.values()]
    rights = [{*items.loc[items["correct"], "item_id"]} for items in (gmr, single)]
    assert alone == [rights[0] - rights[1], rights[1] - rights[0]]


def test_texts_that_may_not_be_redistributed_and_questions_without_room_are_left_out(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = grids(results, 10**6)
    longest = max(len(html) for questions in whole.groups.values() for html in questions)
    (first,) = grids(results, longest)
    assert first.left_out == whole.n - sum(map(len, first.groups.values())) > 0
    manifest = layout.manifest("smoke", BENCHMARK)
    manifest.write_text(manifest.read_text().replace('"embedded"', '"real"', 1))
    monkeypatch.setattr("analysis.page.withheld_benchmarks", lambda: {BENCHMARK})
    (grid,) = grids(results, 10**6)
    assert grid.is_withheld
    assert "def " not in "".join(html for questions in grid.groups.values() for html in questions)


def test_calls_are_counted_by_row(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(finished)
    folder = layout.cell("smoke", Cell("gmr", BENCHMARK, "pool", 0))
    test, training = (pd.read_parquet(folder / f"{name}.parquet") for name in ("calls", "training_calls"))
    (row, whole) = _spent({folder: read_run(folder)}).to_dict("records")
    assert (row["calls"], row["in training"]) == (len(test) + len(training), len(training))
    assert row["distinct"] == pd.concat([test, training])["key"].nunique()
    assert whole == {**row, "row": "all"}


def test_a_real_run_says_what_its_questions_can_show() -> None:
    sizes = {"HumanEval": 32, "Riddles": 4}
    runs = [SimpleNamespace(benchmark_title=title, data=SimpleNamespace(n_test=n)) for title, n in sizes.items()]
    assert "18.8 on HumanEval." in _use(cast(Any, runs))
    assert _use(cast(Any, runs[1:])) == "Too few questions to show any difference: Riddles (4)."
    assert mcnemar(_LEAST, 0) < 0.05 < mcnemar(_LEAST - 1, 0)


def test_models_are_named_in_words() -> None:
    named = {
        "Qwen/Qwen2.5-Coder-0.5B-Instruct:Q4_K_M": "Q4_K - Medium",
        "Qwen/Qwen2.5-Coder-1.5B-Instruct:Q4_K_M": "Q4_K - Medium",
    }
    run = SimpleNamespace(backbones={key: {"model": key, "quantisation": kind} for key, kind in named.items()})
    assert models_in_words(cast(Any, [run])) == "Qwen2.5-Coder 0.5B and 1.5B, 4-bit weights"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_it_is_accessible_and_fits(page: Page, reports: Path, scheme: Literal["light", "dark"], width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((reports / "index.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    violations: list[dict[str, Any]] = Axe().run(page, options={"preload": False}).response["violations"]
    grave = [violation for violation in violations if violation["impact"] in {"serious", "critical"}]
    assert [(violation["id"], violation["nodes"][0]["html"]) for violation in grave] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wider = page.locator(".scroll").evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).length")
    assert wider == 0 or width == 400
    assert page.locator("img").evaluate_all("all => all.every(one => one.naturalWidth > 0)")


def test_of_models_of_ones_own_no_statement_of_the_paper_is_judged(place: Path) -> None:
    write(preset().model_copy(update={"pool": resolve("open_single").pool}))
    text = Path("reports/smoke/index.html").read_text()
    assert ("No statement of the paper is judged" in text, "Not judged yet" in text) == (True, False)


CHROMIUM = os.environ.get("GMR_CHROMIUM") or shutil.which("chromium")
_LOCAL = ("file:", "data:")


@pytest.fixture
def page() -> Iterator[Page]:
    """Yield a page that fails its test on a console error, an exception, or a network request."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or name one in GMR_CHROMIUM")
    from playwright.sync_api import sync_playwright

    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(_LOCAL) else faults.append(request.url))
        yield page
        browser.close()
    assert faults == []

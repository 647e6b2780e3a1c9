"""The page of a run: content, warnings about simulation, and display in a browser."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from analysis.page import _LEAST, _use, write
from analysis.registry import artefact
from harness.runner.preset import resolve
from harness.runner.results import SIMULATED_WARNING
from tests.analysis.by_hand import mcnemar
from tests.finished import REPORTS, preset

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
    # Every number of the main table.
    numbers = re.findall(r"\d+\.\d\d", (reports / "main_table.md").read_text().partition("\n- ")[0])
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


def test_a_real_run_says_what_its_questions_can_show() -> None:
    sizes = {"HumanEval": 32, "Riddles": 4}
    runs = [SimpleNamespace(benchmark_title=title, data=SimpleNamespace(n_test=n)) for title, n in sizes.items()]
    both, few = _use(cast(Any, runs)), _use(cast(Any, runs[1:]))
    assert both.startswith("Use it as evidence")
    assert "HumanEval 18.8 points." in both
    assert "Use it as evidence" not in few
    assert few.endswith("Too few questions to show any difference: Riddles (4).")
    assert mcnemar(_LEAST, 0) < 0.05 < mcnemar(_LEAST - 1, 0)


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


def test_of_models_of_ones_own_no_statement_of_the_paper_is_judged(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished / "results/smoke/cells", tmp_path / "results/smoke/cells")
    monkeypatch.chdir(tmp_path)
    usual, mine = preset(), resolve("open_single").pool
    for pool, is_judged in (({}, True), (mine, False)):
        write(usual.model_copy(update={"pool": pool}))
        text = Path("reports/smoke/index.html").read_text()
        assert ("No statement of the paper is judged" in text, "Not judged yet" in text) == (not is_judged, is_judged)
        assert "not checked" in text

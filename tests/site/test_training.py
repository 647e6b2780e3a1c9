"""The training page in a browser: what it shows is in the logs, and what is chosen stands in its address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import Locator, Page, expect

from analysis.training_view.panels import panels_of
from harness.runner import layout
from harness.runner.config import Cell
from harness.training.checkpoint import load

GMR = Cell("gmr", "gsm_hard", "pool", 0)
AFLOW = Cell("aflow", "gsm_hard", "qwen-2.5-14B", 0)
LEARNED = {"gmr": GMR, "baselines.masrouter": Cell("masrouter", "gsm_hard", "pool", 0)} | {
    f"baselines.{name}": Cell(name, "gsm_hard", "qwen-2.5-14B", 0) for name in ("puppeteer", "aflow")
}
# A chart waits for a library of some megabytes, and the machine may have other things to do.
SLOW_MS = 60_000


def folder_of(run_folder: Path, cell: Cell) -> Path:
    return run_folder / layout.cell("smoke", cell)


def log_of(run_folder: Path, cell: Cell, measure: str) -> list[tuple[float, float]]:
    log = pd.read_parquet(folder_of(run_folder, cell) / "training.parquet")
    rows = log[log["measure"] == measure].sort_values("update")
    return list(zip(rows["update"].astype(float), rows["value"], strict=True))


def open_at(page: Page, site: Path, fragment: str = "") -> None:
    page.goto((site / "site" / "training.html").as_uri() + fragment)
    expect(page.locator("#charts h2")).to_be_visible()


def chart(page: Page, title: str) -> Locator:
    return page.locator("figure").filter(has=page.get_by_role("heading", name=title, exact=True))


def numbers(figure: Locator) -> list[list[str]]:
    """The rows of the table behind a chart, which stands there before it is drawn."""
    rows = figure.locator("tbody tr")
    return [row.locator("td").all_text_contents() for row in rows.all()]


def choose(page: Page, control: str, value: str) -> None:
    page.get_by_label(control, exact=True).select_option(value)


def test_the_first_page_is_an_overview_of_the_papers_method(page: Page, site: Path, run_folder: Path) -> None:
    open_at(page, site)
    expect(page.locator("#charts h2")).to_have_text("GMR on mini-GSM-Hard")
    drawn = numbers(chart(page, "Accuracy"))
    logged = log_of(run_folder, GMR, "accuracy")
    assert len(logged) == len(drawn) > 1
    for (update, value), (_, x, y) in zip(logged, drawn, strict=True):
        assert (float(x), float(y)) == pytest.approx((update, 100 * value), rel=1e-5)
    expect(chart(page, "Utility").locator(".main-svg").first).to_be_visible(timeout=SLOW_MS)


def test_shares_are_those_of_the_decisions(page: Page, site: Path, run_folder: Path) -> None:
    open_at(page, site, "#method=gmr&measure=choice_backbone")
    decisions = pd.read_parquet(folder_of(run_folder, GMR) / "training_decisions.parquet")
    chosen = decisions[decisions["name"] == "backbone"]
    found = {(name, place): float(share) for name, place, share in numbers(chart(page, "Backbones chosen"))}
    for epoch, rows in chosen.groupby("epoch"):
        for name, share in rows["choice"].value_counts(normalize=True).items():
            assert found[name, f"epoch {epoch}"] == pytest.approx(100 * share, rel=1e-5)
    assert sum(share for (_, place), share in found.items() if place == "test") == pytest.approx(100, rel=1e-5)


def test_what_is_chosen_stands_in_the_address_and_back_goes_back(page: Page, site: Path) -> None:
    open_at(page, site)
    choose(page, "Method", "puppeteer/qwen-2.5-14B")
    expect(page.locator("#charts h2")).to_have_text("Puppeteer (qwen-2.5-14B) on mini-GSM-Hard")
    choose(page, "Measure", "entropy")
    expect(page.locator("figure")).to_have_count(1)
    assert "method=puppeteer%2Fqwen-2.5-14B" in page.url
    assert "measure=entropy" in page.url
    again = page.url
    page.go_back()
    expect(page.locator("figure")).not_to_have_count(1)
    page.goto("about:blank")
    page.goto(again)
    expect(page.get_by_label("Measure")).to_have_value("entropy")
    expect(chart(page, "Entropy of the decisions")).to_be_visible()


def test_an_address_that_asks_for_nothing_there_is_shows_what_there_is(page: Page, site: Path) -> None:
    open_at(page, site, "#method=nobody&benchmark=none&measure=nothing&seed=9&points=x&beside=gmr")
    expect(page.locator("#charts h2")).to_have_text(re.compile("on mini-GSM-Hard"))
    expect(page.get_by_label("Measure")).to_have_value("overview")


def test_two_methods_stand_beside_each_other_on_one_axis(page: Page, site: Path) -> None:
    open_at(page, site, "#method=gmr&measure=accuracy")
    choose(page, "Beside it", "masrouter")
    expect(page.locator("#charts h2")).to_have_text("GMR and MASRouter on mini-GSM-Hard")
    left, right = chart(page, "Accuracy, GMR"), chart(page, "Accuracy, MASRouter")
    for figure in (left, right):
        expect(figure.locator(".main-svg").first).to_be_visible(timeout=SLOW_MS)
    ranges = [figure.locator(".plot").evaluate("plot => plot.layout.yaxis.range") for figure in (left, right)]
    assert ranges[0] == ranges[1]
    choose(page, "Measure", "write_rate")
    expect(page.get_by_text("MASRouter has no such measure.")).to_be_visible()


def test_a_search_is_a_curve_over_its_rounds(page: Page, site: Path, run_folder: Path) -> None:
    open_at(page, site, f"#method=aflow/{AFLOW.backbone}&measure=score")
    facts = load(folder_of(run_folder, AFLOW) / "trained.safetensors").facts
    scores = {one["round"]: one["score"] for one in facts["search"] if one["score"] is not None}
    rows = numbers(chart(page, "Score of each round"))
    shown = {int(x): float(y) for name, _, x, y in rows if name == "score"}
    assert shown == pytest.approx(scores, rel=1e-5)
    assert [(int(x), float(y)) for name, _, x, y in rows if name == "chosen"] == [
        (facts["best"], pytest.approx(scores[facts["best"]], rel=1e-5))
    ]
    edits = {int(x): text for name, text, x, _ in rows if name == "score"}
    assert edits[1] == "start workflow"


def test_points_can_be_means_of_epochs(page: Page, site: Path, run_folder: Path) -> None:
    open_at(page, site, "#method=gmr&measure=depth")
    choose(page, "Points", "epochs")
    expect(chart(page, "Depth").locator("tbody tr")).to_have_count(2)
    log = pd.read_parquet(folder_of(run_folder, GMR) / "training.parquet")
    wide = log.pivot(index=["epoch", "update"], columns="measure", values="value")
    means = wide.groupby("epoch").apply(
        lambda rows: (rows["depth"] * rows["trajectories"]).sum() / rows["trajectories"].sum()
    )
    assert [float(y) for *_, y in numbers(chart(page, "Depth"))] == pytest.approx(list(means), rel=1e-5)


@pytest.mark.parametrize("module", LEARNED)
def test_every_measure_that_is_logged_is_explained(run_folder: Path, module: str) -> None:
    log = pd.read_parquet(folder_of(run_folder, LEARNED[module]) / "training.parquet")
    unexplained = [panel.key for panel in panels_of(module, set(log["measure"])) if panel.unit == "as logged"]
    assert unexplained == []


def test_it_lists_every_training(page: Page, site: Path) -> None:
    open_at(page, site)
    table = page.get_by_role("region", name="What was trained")
    rows = [row.locator("td").all_text_contents() for row in table.locator("tbody tr").all()]
    assert [row[0] for row in rows] == ["AFlow (qwen-2.5-14B)", "Puppeteer (qwen-2.5-14B)", "MASRouter", "GMR"]
    assert rows[-1] == ["GMR", "mini-GSM-Hard", "0", "2", "2", "4", "6"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_is_accessible_and_fits(page: Page, site: Path, obstacles: Any, scheme: Any, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    open_at(page, site, "#method=gmr&beside=masrouter&measure=entropy")
    page.locator("figure").first.scroll_into_view_if_needed()
    expect(page.locator("figure .main-svg").first).to_be_visible(timeout=SLOW_MS)
    assert obstacles(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width

"""The index in a real browser; the fixture ``page`` fails each test on an error or a request that leaves the disk."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from analysis.site import charts

MAIN = "#main-table ~ .scroll table >> nth=0"


def opened(page: Page, site: Path, name: str = "index.html") -> Page:
    page.goto((site / name).as_uri())
    return page


def column(table: Locator, number: int) -> list[str]:
    cells = table.locator(f"tbody tr > :nth-child({number + 1})").all_inner_texts()
    return [text.split("\n")[0].strip() for text in cells]


def number(text: str) -> float:
    found = re.match(r"[−-]?[\d.]+", text)
    return float(found[0].replace("−", "-")) if found else float("-inf")


def main_table(page: Page) -> Locator:
    table = page.locator(MAIN)
    table.scroll_into_view_if_needed()
    page.locator("#main-table ~ .scroll .dt-search input >> nth=0").wait_for()
    return table


def test_what_was_run_is_the_first_thing_to_read(page: Page, site: Path) -> None:
    opened(page, site)
    banner = page.locator(".banner.simulated")
    assert banner.inner_text().startswith("SIMULATED BACKBONES: no language model was asked")
    box = banner.bounding_box()
    assert box is not None
    assert box["y"] == 0
    assert box["width"] == 1280
    facts = page.locator("dl.facts").first.inner_text()
    assert "mini-GSM-Hard (8)" in facts
    assert "5 of 20" in facts


def test_the_main_table_sorts_numbers_as_numbers_by_mouse_and_by_key(page: Page, site: Path) -> None:
    table = main_table(opened(page, site))
    before = column(table, 5)
    heads = table.locator("thead th", has_text="Meas.")
    heads.first.click()
    ascending = [number(text) for text in column(table, 5)]
    assert ascending == sorted(ascending)
    heads.first.locator(".dt-column-order").focus()
    page.keyboard.press("Enter")
    descending = [number(text) for text in column(table, 5)]
    assert descending == sorted(descending, reverse=True)
    assert sorted(column(table, 5)) == sorted(before)
    assert heads.first.get_attribute("aria-sort") == "descending"


def test_rows_keep_their_method_when_they_part(page: Page, site: Path) -> None:
    table = main_table(opened(page, site))
    pairs = sorted(zip(column(table, 0), column(table, 1), strict=True))
    table.locator("thead th", has_text="LLM").first.click()
    assert sorted(zip(column(table, 0), column(table, 1), strict=True)) == pairs
    assert all(method for method, _ in pairs)
    assert len(pairs) == len({(one["method"], one["backbone"]) for one in charts.read(site / "main_table.csv")})


def test_the_main_table_filters_as_one_types(page: Page, site: Path) -> None:
    table = main_table(opened(page, site))
    page.locator("#main-table ~ .scroll .dt-search input").first.fill("macnet tree")
    assert set(column(table, 0)) == {"MacNet-Tree"}


def test_a_measured_number_opens_its_cell(page: Page, site: Path) -> None:
    table = main_table(opened(page, site))
    table.locator("tr", has_text="GMR").locator("td a").first.click()
    assert page.url == f"{(site / 'site' / 'explorer.html').as_uri()}#cell=gmr/gsm_hard/pool/0"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("75.4 ± 2", 75.4),
        ("78.12† +3.42 70.2–84.4", 78.12),
        ("−2.34", -2.34),
        ("×1.30", 1.3),
        ("167,676", 167676),
        ("1.5e-4", 0.00015),
        ("12 %", 12),
        ("3e06b7b2a102", None),
        ("–", None),
        ("mini-MATH", None),
        ("qwen-2.5-14B", None),
    ],
)
def test_what_counts_as_a_number(page: Page, site: Path, text: str, value: float | None) -> None:
    assert opened(page, site).evaluate("text => GMR.numberOf(text)", text) == value


def test_claims_can_be_chosen_by_verdict(page: Page, site: Path) -> None:
    opened(page, site)
    page.locator("#claims").scroll_into_view_if_needed()
    page.get_by_role("combobox", name="In print").select_option("inconsistent")
    table = page.locator("table.claims")
    shown = table.locator("tbody tr").evaluate_all("rows => rows.map(row => row.id)")
    records = charts.read(site / "claims.csv")
    assert shown == list(dict.fromkeys(one["claim"] for one in records if one["claim_print_verdict"] == "inconsistent"))
    page.get_by_role("combobox", name="In print").select_option("all")
    assert table.locator("tbody tr").count() == len({one["claim"] for one in records})


def test_charts_are_drawn_when_they_are_seen_and_can_be_hovered(page: Page, site: Path) -> None:
    opened(page, site)
    chart = page.locator('[data-chart="charts/pareto_gsm"]')
    assert page.evaluate("typeof window.Plotly") == "undefined"
    chart.scroll_into_view_if_needed()
    star = chart.locator(".scatterlayer .trace path.point").last
    star.wait_for()
    star.hover(force=True)
    hover = chart.locator(".hoverlayer")
    hover.get_by_text("95 % interval").first.wait_for()
    assert "published" in hover.text_content()
    assert "SIMULATED" in chart.locator(".annotation").text_content()


def test_a_chart_is_saved_with_its_warning(page: Page, site: Path) -> None:
    opened(page, site)
    chart = page.locator('[data-chart="charts/pareto_gsm"]')
    chart.scroll_into_view_if_needed()
    chart.locator(".modebar").wait_for(state="attached")
    chart.hover()
    with page.expect_download() as saved:
        chart.locator('[data-title="Save as SVG"]').click()
    assert saved.value.suggested_filename == "accuracy-against-cost-mini-gsm-hard.svg"
    assert "SIMULATED" in Path(saved.value.path()).read_text()


def test_the_numbers_of_a_chart_are_there_without_seeing_it(page: Page, site: Path) -> None:
    opened(page, site)
    chart = page.locator('[data-chart="charts/pareto_gsm"]')
    chart.locator("summary").click()
    rows = chart.locator("tbody tr").all_inner_texts()
    records = charts.read(site / "pareto_gsm.csv")
    sides = [(one["measured"], one["cost_per_query"]) for one in records]
    sides += [(one["published"], one["published_cost_per_query"]) for one in records]
    assert len(rows) == len([1 for accuracy, cost in sides if accuracy and cost])
    gmr = next(one for one in records if one["method"] == "gmr")
    row = next(row for row in rows if row.startswith("GMR\t")).split("\t")
    assert float(row[-1]) == float(gmr["measured"])
    assert float(row[-2]) == pytest.approx(1e4 * float(gmr["cost_per_query"]), rel=1e-5)


def test_light_and_dark_follow_the_system_until_one_is_chosen(page: Page, site: Path) -> None:
    opened(page, site)
    theme = page.locator("html")
    expect(theme).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(theme).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(theme).to_have_attribute("data-theme", "light")
    page.reload()
    expect(theme).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Switch between light and dark").click()
    page.emulate_media(color_scheme="light")
    expect(theme).to_have_attribute("data-theme", "light")


def test_charts_change_with_the_scheme(page: Page, site: Path) -> None:
    opened(page, site)
    chart = page.locator('[data-chart="charts/pareto_gsm"]')
    chart.scroll_into_view_if_needed()
    background = chart.locator("svg.main-svg").first
    expect(background).to_have_css("background-color", "rgb(255, 255, 255)")
    page.emulate_media(color_scheme="dark")
    expect(background).to_have_css("background-color", "rgb(20, 23, 27)")


def test_the_content_is_the_first_stop_of_the_keyboard(page: Page, site: Path) -> None:
    opened(page, site)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_headings_go_down_one_level_at_a_time(page: Page, site: Path) -> None:
    for name in ("index.html", "site/deviations.html"):
        opened(page, site, name)
        levels = page.locator("h1, h2, h3, h4, h5, h6").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["index.html", "site/deviations.html"])
def test_no_page_is_wider_than_its_window(page: Page, site: Path, name: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    everything_shown(opened(page, site, name))
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "site/deviations.html"])
def test_nothing_serious_stands_in_the_way_of_anyone(
    page: Page, site: Path, obstacles: Callable[[Page], list[Any]], name: str, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    everything_shown(opened(page, site, name))
    assert obstacles(page) == []


def everything_shown(page: Page) -> None:
    """Every part unfolded, every chart drawn, every table made."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for one in page.locator("table.sortable, [data-chart]").all():
        one.scroll_into_view_if_needed()
    # Not wait_for_function, which evaluates text: the pages forbid that.
    expect(page.locator("[data-chart]:not(:has(.plot))")).to_have_count(0)
    for one in page.locator(".plot").all():
        one.scroll_into_view_if_needed()
    expect(page.locator(".plot.waiting")).to_have_count(0)
    expect(page.locator("table.sortable:not(.dataTable)")).to_have_count(0)

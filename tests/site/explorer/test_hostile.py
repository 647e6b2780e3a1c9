from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from analysis.site.chunks import write_chunk
from tests.analysis.test_explorer_data import value
from tests.site.explorer.odd import (
    HOSTILE,
    LARGE,
    ODD_ID,
    ODD_ROLE,
    ROUTER,
    show,
    visible,
)


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_model_says_is_shown_and_does_nothing(page: Page, odd: Path, name: str) -> None:
    show(page, odd, f"{ROUTER}&item={name}")
    for summary in page.locator("summary").all():
        summary.click()
    expect(page.locator("details:not(:has(pre))")).to_have_count(0)
    assert page.locator("[data-step='1'] .call > pre").evaluate("shown => shown.textContent") == visible(HOSTILE[name])
    messages = page.locator("[data-step='1'] .message pre").all()
    assert [one.evaluate("shown => shown.textContent") for one in messages] == ["You are 1", visible(HOSTILE[name])]
    assert page.evaluate("window.hit") is None
    assert page.locator("#explorer :is(script, img, svg, style, iframe, a[href^='javascript'])").count() == 0
    # Nothing of the page around has moved, turned round or gone.
    assert page.evaluate("getComputedStyle(document.body).direction") == "ltr"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("header .banner").is_visible()


def test_the_override_of_direction_has_no_power(page: Page, odd: Path) -> None:
    show(page, odd, f"{ROUTER}&item=direction")
    shown = page.locator("[data-step='1'] .call > pre")
    places = shown.evaluate(
        """shown => {
          const at = (text) => {
            const walker = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT);
            for (let node = walker.nextNode(); node; node = walker.nextNode()) {
              const place = node.data.indexOf(text);
              if (place < 0) continue;
              const range = document.createRange();
              range.setStart(node, place);
              range.setEnd(node, place + 1);
              return range.getBoundingClientRect().left;
            }
          };
          return [at("safe"), at("txt"), at("exe")];
        }"""
    )
    assert places == sorted(places)


def test_a_text_of_a_million_characters_unfolds_piece_by_piece(page: Page, odd: Path) -> None:
    show(page, odd, f"{ROUTER}&item=large")
    call = page.locator("[data-step='1'] .call").first
    length = "shown => shown.textContent.length"
    assert call.locator("pre").evaluate(length) == 3000
    more = call.locator("button.more")
    assert more.inner_text() == "Show 100,000 more of 1,000,000 characters"
    more.click()
    assert call.locator("pre").evaluate(length) == 103_000
    more.evaluate("button => { while (button.isConnected) button.click(); }")
    assert call.locator("pre").evaluate("shown => shown.textContent") == LARGE
    assert more.count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_halves_of_pairs_and_parted_pairs(page: Page, odd: Path) -> None:
    name = "explorer/gmr/gsm_hard/pool/0"
    rows = value(odd / f"data/{name}/items.js")
    number = rows["chunk"][rows["id"].index("twelve")]
    path = odd / f"data/{name}/{number}.js"
    before, chunk = path.read_bytes(), value(path)
    place = chunk["paragraphs"].index("reply 11")
    # A cut after 3,000 code units would part a pair.
    chunk["paragraphs"][place] = "a\ud800b\udc00" + "\U0001f600" * 4000
    write_chunk(odd / "data", f"{name}/{number}", chunk)
    try:
        show(page, odd, f"{ROUTER}&item=twelve")
        call = page.locator("[data-step='1'] .call").first
        assert call.locator("pre").evaluate("shown => shown.textContent").startswith("aU+D800bU+DC00\U0001f600")
        call.locator("button.more").click()
        assert call.locator(".hidden-character").count() == 2
    finally:
        path.write_bytes(before)


def test_ids_and_names_with_markup_and_signs_of_addresses(page: Page, odd: Path) -> None:
    show(page, odd, ROUTER)
    page.locator("table.items a", has_text=ODD_ID).click()
    page.wait_for_selector("article")
    assert page.locator("h2").inner_text() == f"GSM-Hard, {ODD_ID}"
    address = page.url
    page.reload()
    page.wait_for_selector("article")
    assert page.url == address
    assert page.locator("h2").inner_text() == f"GSM-Hard, {ODD_ID}"
    assert page.locator("[data-step='1'] h5").inner_text() == f"act: {ODD_ROLE} on small"
    page.click("[aria-label='Link to step 2']")
    assert page.locator(".step.named").count() == 1


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("#cell=gmr/gsm_hard/pool/7", "There is no cell gmr/gsm_hard/pool/7 here"),
        (f"{ROUTER}&item=<img src=x onerror=window.hit=1>", "has no item <img src=x onerror=window.hit=1>"),
        (f"{ROUTER}&item=%E0%A4%A", "has no item %E0%A4%A"),
    ],
)
def test_an_address_that_names_nothing(page: Page, odd: Path, fragment: str, words: str) -> None:
    show(page, odd, fragment)
    assert words in page.locator("#trouble").inner_text()
    assert page.evaluate("window.hit") is None
    page.click("#way a")
    page.wait_for_selector("table.cells")
    assert not page.locator("#trouble").is_visible()


def test_a_chunk_that_hands_nothing_over(page: Page, odd: Path) -> None:
    path = odd / "data/explorer/single/mbpp/small/0/0.js"
    before = path.read_bytes()
    path.write_bytes(b"")
    try:
        show(page, odd, "#cell=single/mbpp/small/0&item=p")
        assert "data/explorer/single/mbpp/small/0/0.js is missing or damaged" in page.locator("#trouble").inner_text()
    finally:
        path.write_bytes(before)

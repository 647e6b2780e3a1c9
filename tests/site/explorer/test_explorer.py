from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.site.explorer.odd import (
    BY_GMR,
    BY_SINGLE,
    FAILED,
    ITEMS,
    ODD_ROLE,
    PROBABILITIES,
    RIGHT,
    ROUTER,
    WRONG,
    exact,
    ids,
    items,
    show,
    wait_for_rows,
)


def test_from_a_cell_to_an_item_to_a_step_and_back(page: Page, odd: Path) -> None:
    show(page, odd)
    assert page.locator("table.cells tbody tr").count() == 2
    page.click("[data-cell='gmr/gsm_hard/pool/0']")
    page.wait_for_selector("table.items")
    assert items(page) == [item.id for item in ITEMS]
    page.click("[data-item='eleven']")
    page.wait_for_selector("article")
    assert page.url.endswith("#cell=gmr/gsm_hard/pool/0&item=eleven")
    assert page.locator("article .step").count() == 4
    page.click("[aria-label='Link to step 2']")
    assert page.url.endswith("&item=eleven&step=2")
    assert page.locator(".step.named h4").inner_text() == "Step 2 #"
    page.go_back()
    assert page.locator(".step.named").count() == 0
    page.go_back()
    page.wait_for_selector("table.items")
    page.go_back()
    page.wait_for_selector("table.cells")


def test_a_linked_step_is_there_at_once(page: Page, odd: Path) -> None:
    show(page, odd, f"{ROUTER}&item=eleven&step=3")
    step = page.locator(".step.named")
    step.wait_for()
    assert step.get_attribute("data-step") == "3"
    assert step.evaluate("step => step.getBoundingClientRect().top < innerHeight")


def test_the_cells_can_be_filtered(page: Page, odd: Path) -> None:
    show(page, odd)
    page.fill("input[type=search]", "POOL")
    assert [row.is_visible() for row in page.locator("table.cells tbody tr").all()] == [False, True]
    links = page.locator("table.cells tbody tr:visible a").all()
    assert [link.inner_text() for link in links] == [f"{100 * 7 / 12:.1f} %"]


@pytest.mark.parametrize("kind", ["right", "wrong", "error"])
def test_items_by_their_verdict(page: Page, odd: Path, kind: str) -> None:
    show(page, odd, ROUTER)
    page.select_option("select[name=show]", kind)
    wanted = {"right": RIGHT, "wrong": WRONG, "error": FAILED}[kind]
    wait_for_rows(page, BY_GMR.count(wanted))
    assert items(page) == ids(*(verdict is wanted for verdict in BY_GMR))
    # The address alone brings the same.
    show(page, odd, f"{ROUTER}&show={kind}")
    assert items(page) == ids(*(verdict is wanted for verdict in BY_GMR))


def test_items_that_one_answered_and_the_other_did_not(page: Page, odd: Path) -> None:
    pairs = [(one.correct, two.correct) for one, two in zip(BY_GMR, BY_SINGLE, strict=True)]
    show(page, odd, ROUTER)
    page.select_option("select[name=beside]", "single/gsm_hard/small/0")
    page.wait_for_selector("select[name=show] option[value=right-wrong]", state="attached")
    page.select_option("select[name=show]", "right-wrong")
    wanted = ids(*(one and not two for one, two in pairs))
    wait_for_rows(page, len(wanted))
    assert items(page) == wanted
    show(page, odd, f"{ROUTER}&beside=single/gsm_hard/small/0&show=wrong-right")
    assert items(page) == ids(*(two and not one for one, two in pairs))
    # The benchmark is the same for both, so a cell of another one cannot be chosen.
    assert page.locator("select[name=beside] option").count() == 2


def test_items_by_words_and_in_another_order(page: Page, odd: Path) -> None:
    show(page, odd, ROUTER)
    page.fill("input[name=find]", "NUMBER 1")
    wait_for_rows(page, 3)
    assert items(page) == [ITEMS[1].id, ITEMS[10].id, ITEMS[11].id]
    page.click("button.sort:has-text('Item')")
    page.wait_for_selector("th[aria-sort=ascending]")
    assert items(page) == ["eleven", "quotes", "twelve"]
    page.click("button.sort:has-text('Item')")
    page.wait_for_selector("th[aria-sort=descending]")
    assert items(page) == ["twelve", "quotes", "eleven"]
    # What comes next is the next of these.
    page.click("[data-item='twelve']")
    page.wait_for_selector("article")
    page.click("a[rel=next]")
    expect(page.locator("h2")).to_have_text("GSM-Hard, quotes")


def test_a_long_list_begins_with_its_beginning(page: Page, odd: Path) -> None:
    show(page, odd, "#cell=single/math/small/0&sort=-id")
    assert items(page) == [str(number) for number in range(202, 102, -1)]
    assert page.locator("table.items caption").inner_text() == "203 items"
    page.click("button.more")
    assert items(page)[-3:] == ["2", "1", "0"]
    assert page.locator("button.more").count() == 0


def test_two_trajectories_of_one_question(page: Page, odd: Path) -> None:
    show(page, odd, f"{ROUTER}&item=eleven&beside=single/gsm_hard/small/0")
    left, right = page.locator("article").all()
    assert (left.get_attribute("data-cell"), right.get_attribute("data-cell")) == (
        "gmr/gsm_hard/pool/0",
        "single/gsm_hard/small/0",
    )
    assert "reply 10" in left.inner_text()
    assert "alone 10" in right.inner_text()
    boxes = left.bounding_box(), right.bounding_box()
    assert boxes[0]
    assert boxes[1]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    # Steps of the second have no address, so none is marked twice.
    assert page.locator("[data-step='1']").count() == 1


def test_what_the_policy_did_is_shown_with_its_probabilities(page: Page, odd: Path) -> None:
    show(page, odd, f"{ROUTER}&item=eleven")
    for step in (1, 2, 3):
        section = page.locator(f"[data-step='{step}']")
        assert f"{ODD_ROLE}" in section.locator("dl").first.inner_text()
        chosen = exact(section.locator(".chosen .share"))
        assert chosen == [math.exp(math.log(PROBABILITIES[name] / step)) for name in ("role", "backbone")]
        seen, (written, *halted) = (
            exact(section.locator(".memory .share")),
            exact(section.locator("dl:last-child .share")),
        )
        assert seen == ([] if step == 1 else [pytest.approx(0.4)])
        probability = PROBABILITIES["write"] * step
        assert written == pytest.approx(probability if step == 1 else 1 - probability)
        assert halted == ([] if step == 3 else [pytest.approx(PROBABILITIES["halt"] * step)])
    assert "stored" in page.locator("[data-step='1'] dl:last-child").inner_text()
    assert "refused" in page.locator("[data-step='2'] dl:last-child").inner_text()
    assert "halted, without a draw" in page.locator("[data-step='3'] dl:last-child").inner_text()
    assert page.locator("[data-step='2'] .memory").inner_text().startswith("what step 1 said: left out")
    assert page.locator("[data-step='1'] dl").first.inner_text().endswith("empty")


def test_a_failed_call_says_why_and_only_made_up_replies_are_said_to_be(page: Page, odd: Path) -> None:
    show(page, odd, "#cell=single/gsm_hard/small/0&item=broken")
    assert page.locator(".failure").inner_text() == "The call failed: the server said <no>"
    assert page.locator(".verdict.error").count() == 1
    show(page, odd, f"{ROUTER}&item=eleven")
    assert page.locator(".call .made-up").count() == page.locator(".call").count() == 4
    show(page, odd, "#cell=single/mbpp/small/0&item=p")
    assert (page.locator(".call").count(), page.locator(".made-up").count()) == (1, 0)


def test_the_question_the_gold_answer_and_the_totals(page: Page, odd: Path) -> None:
    show(page, odd, f"{ROUTER}&item=eleven")
    question, gold, extracted = (one.evaluate("shown => shown.textContent") for one in page.locator("pre").all()[:3])
    assert (question, gold, extracted) == (ITEMS[10].question, "10", "8")
    took = page.locator("article > dl").nth(1).inner_text()
    assert "3 steps, 4 calls, 400 + 40 tokens" in took
    assert "8.00000" in took
    assert page.locator("article .verdict").first.inner_text() == "✗ wrong"


def test_keys(page: Page, odd: Path) -> None:
    show(page, odd, ROUTER)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    assert page.url.endswith(f"item={ITEMS[1].id}")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("h2:has-text('markdown')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("h2:has-text('quotes')")
    page.keyboard.press("Escape")
    page.wait_for_selector("table.items")
    # In a field the keys are the field's own.
    page.focus("input[name=find]")
    page.keyboard.type("x")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.name") == "find"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_nothing_serious_is_in_the_way_of_readers(page: Page, odd: Path, scheme: Any, width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    beside = "&beside=single/gsm_hard/small/0"
    for fragment in ("", f"{ROUTER}{beside}", f"{ROUTER}&item=controls{beside}"):
        show(page, odd, fragment)
        for summary in page.locator("summary").all():
            summary.click()
        # Its preloading asks for styles over the network, which the page forbids.
        found = Axe().run(page, options={"preload": False}).response
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        assert [(one["id"], one["nodes"][0]["html"]) for one in serious] == []
        assert "color-contrast" in {one["id"] for one in found["passes"]}
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

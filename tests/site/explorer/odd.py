"""An explorer of four cells whose texts, ids and names are as bad as can be, and how tests look at it."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from analysis import results
from analysis.explorer import page as explorer_page
from analysis.site.frame import ASSETS
from analysis.site.libraries import libraries
from analysis.site.source import Finished
from harness.agents.trajectory import Decision
from harness.benchmarks.items import Item, Status, Verdict
from harness.llm.request import Reply
from harness.runner import config, layout
from harness.runner.config import Cell
from tests.analysis.trajectories.made import PRESET, Ask, Story, finish, prepare

GMR = Cell("gmr", "gsm_hard", "pool", 0)
SINGLE = Cell("single", "gsm_hard", "small", 0)
OTHER = Cell("single", "mbpp", "small", 0)
LONG = Cell("single", "math", "small", 0)
RIGHT = Verdict(True, "7", Status.GRADED)
WRONG = Verdict(False, "8", Status.GRADED)
FAILED = Verdict(False, None, Status.CALL_FAILED)
ODD_ID = "a/b&item=<b>#%20'\"=é"
ODD_ROLE = "Ro<i>le</i>/&%#"
HOSTILE = {
    "script": "<script>window.hit = 1</script></script><img src=x onerror='window.hit = 2'><svg onload=window.hit=3>",
    "quotes": "');window.hit=4;('\"];window.hit=5;</title></pre><style>* { display: none }</style><!--",
    "markdown": "# Title\n**bold** [x](javascript:window.hit=6) $\\frac{1}{2}$ `code` &lt;b&gt; &amp;",
    "controls": "a\0b\x1b[31mc\x7fd\u2028e\rf\x85g",
    "direction": "safe \u202etxt.exe\u202c \u200f\u05d0\u05d1\u05d2 \u2066x\u2069\ufeff\u200b end",
    "broken": b"caf\xff\xfe\xc3(".decode("utf-8", "replace"),
    "joined": "\U0001f469\u200d\U0001f4bb \u0645\u06cc\u200c\u062e",
    "space": "  two\n\n\n\tlines  \n",
}
LARGE = "x" * 1_000_000
PROBABILITIES = {"role": 0.3, "backbone": 0.7, "write": 0.2, "halt": 0.15}


def question(place: int, id_: str) -> Item:
    return Item(id_, "gsm_hard", f"Question number {place}, asked <b>boldly</b>\n\nin two paragraphs", str(place))


ITEMS = [question(place, id_) for place, id_ in enumerate([*HOSTILE, "large", ODD_ID, "eleven", "twelve"])]
BY_GMR = [RIGHT, WRONG, RIGHT, WRONG, FAILED, RIGHT, RIGHT, WRONG, RIGHT, RIGHT, WRONG, RIGHT]
BY_SINGLE = [RIGHT, RIGHT, WRONG, WRONG, RIGHT, FAILED, RIGHT, RIGHT, WRONG, RIGHT, WRONG, RIGHT]


def by_router(place: int, verdict: Verdict) -> Story:
    """Three steps: what the first said is seen by the second, and the last, the deepest, draws no halting."""
    text = HOSTILE.get(ITEMS[place].id, LARGE if ITEMS[place].id == "large" else f"reply {place}")
    asks = [
        Ask(
            text if step == 1 else f"step {step} of {place}",
            [("system", f"You are {step}"), ("user", text)],
            how={"step": step, "purpose": "act", "role": ODD_ROLE},
        )
        for step in (1, 2, 3)
    ]
    asks.append(Ask(f"final {place}", how={"step": 4, "purpose": "aggregate", "is_step": False}))
    decisions = []
    for step in (1, 2, 3):
        decisions += [
            Decision(step, "role", 0, ODD_ROLE, 26, math.log(PROBABILITIES["role"] / step)),
            Decision(step, "backbone", 0, "small", 5, math.log(PROBABILITIES["backbone"] / step)),
            *([Decision(step, "retrieve", 0, "no", 2, math.log(0.6))] if step > 1 else []),
            Decision(step, "write", 0, "yes" if step == 1 else "no", 2, math.log(PROBABILITIES["write"] * step)),
        ]
        if step < 3:
            decisions.append(Decision(step, "halt", 0, "no", 2, math.log1p(-PROBABILITIES["halt"] * step)))
    return Story(asks, decisions, answer=text, verdict=verdict)


def alone(place: int, verdict: Verdict) -> Story:
    refused = verdict is FAILED
    reply = Reply.failed("org/model", "the server said <no>") if refused else f"alone {place} " + "word " * place
    return Story([Ask(reply, [("user", f"Ask {place}")])], answer="" if refused else f"alone {place}", verdict=verdict)


def make_site() -> None:
    prepare([Item("p", "mbpp", "Write it", "pass")])
    finish(OTHER, [Item("p", "mbpp", "Write it", "pass")], [alone(0, RIGHT)], simulated=False)
    many = [Item(f"{place}", "math", "How many?", "many") for place in range(203)]
    prepare(many)
    finish(LONG, many, [Story([Ask("many")]) for _ in many])
    prepare(ITEMS)
    finish(GMR, ITEMS, [by_router(place, verdict) for place, verdict in enumerate(BY_GMR)])
    finish(SINGLE, ITEMS, [alone(place, verdict) for place, verdict in enumerate(BY_SINGLE)])
    cells = tuple(results.read(layout.cell(PRESET, cell)) for cell in (SINGLE, OTHER, LONG, GMR))
    folder = Path("reports/embedded/site")
    shutil.copytree(ASSETS, folder)
    for name, text in libraries().items():
        path = folder / "lib" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    explorer_page.write(Finished(config.preset(PRESET), cells, (), (), folder.parent))


def show(page: Page, site: Path, fragment: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{(site / 'explorer.html').as_uri()}{fragment}")
    page.wait_for_selector("#explorer h2, #trouble:not([hidden])")


def items(page: Page) -> list[str]:
    return [link.get_attribute("data-item") or "" for link in page.locator("table.items tbody a").all()]


def wait_for_rows(page: Page, count: int) -> None:
    expect(page.locator("table.items tbody tr")).to_have_count(count)


def ids(*wanted: bool) -> list[str]:
    return [item.id for item, is_wanted in zip(ITEMS, wanted, strict=True) if is_wanted]


def visible(text: str) -> str:
    """A text as the page writes it: what is not seen by its code, all else as it is."""
    hidden = r"[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
    return re.sub(hidden, lambda found: f"U+{ord(found[0]):04X}", text)


def exact(where: Locator) -> list[float]:
    return [float(one.get_attribute("data-exact") or "nan") for one in where.all()]


ROUTER = "#cell=gmr/gsm_hard/pool/0"

"""How long the explorer takes to show its views at the size of the full rehearsal.

    python -m tests.evidence.explorer

Makes, in a temporary folder, two cells of 1,056 questions, the most that a benchmark has: one of three steps a question
with gates, and one with the 35 calls of MacNet-Complete, replies of 1,300 characters and prompts that repeat them. Of
the other cells of the preset `rehearsal` there is one question each, so that the list of cells has its full length.
Prints what the two cells take on the disk, and the seconds from the address to the view in a fresh Chromium.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from analysis import registry, results
from analysis.explorer import page
from analysis.site.frame import ASSETS
from analysis.site.source import Finished
from harness.benchmarks.items import Item
from harness.runner import config, layout
from harness.runner.config import Cell
from tests.analysis.trajectories.made import PRESET, RIGHT, Ask, Story, finish, prepare

QUESTIONS = 1056
REPLY = 1300
TIMES = 5
ENDS = ("", "n", "rk", "st", "lum")
WORDS = [f"{start}{middle}{end}" for start in "bdfgklmnprst" for middle in "aeiou" for end in ENDS]
LARGE = {"gmr": Cell("gmr", "gsm_hard", "pool", 0), "macnet": Cell("macnet_complete", "gsm_hard", "qwen-2.5-14B", 0)}
STEPS = {"gmr": 3, "macnet": 35}


def text(draw: random.Random, length: int) -> str:
    """Words without end, in paragraphs."""
    found = ""
    while len(found) < length:
        found += " ".join(draw.choices(WORDS, k=60)) + ".\n\n"
    return found[:length]


def story(draw: random.Random, steps: int) -> Story:
    """Every step sees what the two before it said."""
    said: list[str] = []
    asks = []
    for step in range(1, steps + 1):
        prompt = "\n\n".join([f"Step {step}", "The question", *said[-2:]])
        said.append(text(draw, REPLY))
        asks.append(Ask(said[-1], [("system", "The rules " * 50), ("user", prompt)], how={"step": step, "slot": step}))
    return Story(asks, answer=said[-1], verdict=RIGHT)


def make() -> Path:
    """The explorer, in the working folder."""
    draw = random.Random(0)
    cells = []
    for benchmark in config.preset("rehearsal").benchmarks:
        items = [Item(f"q/{n}", benchmark, text(draw, 250), str(n)) for n in range(QUESTIONS)]
        prepare(items)
        for cell in registry.cells_of(config.preset("rehearsal")):
            if cell.benchmark == benchmark:
                steps = next((STEPS[name] for name, large in LARGE.items() if large == cell), None)
                asked = items if steps else items[:1]
                finish(cell, asked, [story(draw, steps or 1) for _ in asked])
                cells.append(results.read(layout.cell(PRESET, cell)))
    folder = Path("reports/site").resolve()
    shutil.copytree(ASSETS, folder)
    page.write(Finished(config.preset(PRESET), tuple(cells), (), (), folder.parent))
    return folder


def seconds(browser: Browser, address: str, awaited: str) -> float:
    """From the address to what is awaited, in a browser that has loaded nothing yet."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    shown = context.new_page()
    start = time.perf_counter()
    shown.goto(address)
    shown.wait_for_selector(awaited)
    shown.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    taken = time.perf_counter() - start
    context.close()
    return taken


def main() -> None:
    """Make, load, print."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        start = time.perf_counter()
        site = make()
        print(f"made in {time.perf_counter() - start:.0f} s")
        names = {name: f"{cell.method}/{cell.benchmark}/{cell.backbone}/{cell.seed}" for name, cell in LARGE.items()}
        for name in names.values():
            files = list((site / "data/explorer" / name).iterdir())
            sizes = [path.stat().st_size for path in files]
            print(f"{name}: {sum(sizes) / 1e6:.1f} MB in {len(files)} files, the largest {max(sizes) / 1e3:.0f} kB")
        views = {
            "all cells": ("", "table.cells"),
            "the items of a cell": (f"#cell={names['gmr']}", "table.items"),
            "two cells compared": (f"#cell={names['gmr']}&beside={names['macnet']}&show=right", "table.items"),
            "a trajectory": (f"#cell={names['gmr']}&item=q/1000", "article .step"),
            "two side by side": (f"#cell={names['gmr']}&item=q/1000&beside={names['macnet']}", "article .step"),
        }
        browser_path = os.environ.get("GMR_CHROMIUM") or shutil.which("chromium")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            for view, (fragment, awaited) in views.items():
                address = f"{(site / 'explorer.html').as_uri()}{fragment}"
                taken = [seconds(browser, address, awaited) for _ in range(TIMES)]
                print(f"{view}: median {statistics.median(taken):.2f} s, worst {max(taken):.2f} s of {TIMES}")
            browser.close()
        os.chdir("/")


if __name__ == "__main__":
    main()

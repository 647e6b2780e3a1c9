"""Takes the picture of the README, docs/images/report.png, from the report of a run.

    python docs/site/picture.py reports/embedded/index.html

It needs a Chromium: the one on the path, or the one that GMR_CHROMIUM names.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

OUT = Path(__file__).resolve().parents[1] / "images" / "report.png"
SIZE = ViewportSize(width=1480, height=1440)
COLOURS = 64


def taken(page: Path) -> bytes:
    """The banner, and the main table below it, as a PNG."""
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=os.environ.get("GMR_CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"]
        )
        shown = browser.new_page(viewport=SIZE, color_scheme="light")
        shown.goto(page.resolve().as_uri())
        shown.wait_for_selector("table.dataTable")
        # What stands between the banner and the table.
        shown.add_style_tag(content="main > .facts, main > .contents { display: none }")
        picture = shown.screenshot()
        browser.close()
    return picture


if __name__ == "__main__":
    few_colours = Image.open(io.BytesIO(taken(Path(sys.argv[1])))).convert(
        "P", palette=Image.Palette.ADAPTIVE, colors=COLOURS
    )
    few_colours.save(OUT, optimize=True)

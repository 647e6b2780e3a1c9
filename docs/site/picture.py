"""The picture of the README, the head of a run's page: ``python docs/site/picture.py`` takes it, once there is one."""

import os
import shutil
from io import BytesIO
from pathlib import Path

import orjson
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import sync_playwright

from harness.runner import layout
from harness.runner.layout import POOL, Cell

PICTURE = Path(__file__).resolve().parents[1] / "images" / "report.png"
PRESET = "embedded"
# The learned rows depend on the processor, which the name of the encoder tells.
_LEARNED = Cell("gmr", "humaneval", POOL, 0)


def take() -> tuple[bytes, dict[str, str]]:
    """Return the picture of the preset's page in the working folder, and its main table and encoder as text."""
    page_file = (layout.REPORTS / PRESET / "index.html").resolve()
    with sync_playwright() as playwright:
        chromium = os.environ.get("GMR_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light", device_scale_factor=1.5)
        page.goto(page_file.as_uri())
        table = page.locator(".first .scroll")
        height = table.evaluate("table => table.getBoundingClientRect().bottom")
        shot = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": 1280, "height": height})
        text = table.locator("tbody").inner_text()
        browser.close()
    run = orjson.loads((layout.cell(PRESET, _LEARNED) / "run.json").read_bytes())
    return shot, {"Table": text, "Encoder": run["encoder"]}


if __name__ == "__main__":
    shot, texts = take()
    about = PngInfo()
    for name, text in texts.items():
        about.add_itxt(name, text)
    Image.open(BytesIO(shot)).convert("RGB").save(PICTURE, pnginfo=about, optimize=True)

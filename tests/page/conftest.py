"""The page of a finished run, and a browser that lets nothing pass."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = os.environ.get("GMR_CHROMIUM") or shutil.which("chromium")
_LOCAL = ("file:", "data:")


@pytest.fixture(scope="session")
def reports(finished: Path) -> Path:
    """Return the folder of the preset's reports."""
    return finished / "reports" / "smoke"


# A module at a time: while it is open, no other test of the process can run an event loop of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a headless Chromium; tests are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or name one in GMR_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a page that fails its test on an error in the console, an exception, or a request that leaves the disk."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(_LOCAL) else faults.append(request.url))
    yield page
    context.close()
    assert faults == []

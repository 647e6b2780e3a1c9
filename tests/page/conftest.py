"""A browser page that fails its test on network requests and errors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = os.environ.get("GMR_CHROMIUM") or shutil.which("chromium")
_LOCAL = ("file:", "data:")


@pytest.fixture
def page() -> Iterator[Page]:
    """Yield a page that fails its test on a console error, an exception, or a network request."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or name one in GMR_CHROMIUM")
    from playwright.sync_api import sync_playwright

    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(_LOCAL) else faults.append(request.url))
        yield page
        browser.close()
    assert faults == []

"""A site made from a small real run, and a browser that lets nothing pass."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.files import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = os.environ.get("GMR_CHROMIUM") or shutil.which("chromium")
_LOCAL = ("file:", "data:", "blob:")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with results and reports, made once for all workers; read it, do not write."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _make(folder)
    return folder


def _make(folder: Path) -> None:
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    command = [sys.executable, "-m", "tests.site.run"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    made = subprocess.run(
        command,
        cwd=unfinished,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=280,
    )
    assert made.returncode == 0, made.stderr
    unfinished.rename(folder)


@pytest.fixture(scope="session")
def site(run_folder: Path) -> Path:
    """The folder of the preset's reports: ``index.html``, and below ``site/`` the other pages."""
    return run_folder / "reports" / "smoke"


# A module at a time: while it is open, no other test of the process can run an event loop of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium; tests are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or name one in GMR_CHROMIUM")
    from playwright.sync_api import expect, sync_playwright

    # Machines that run other tests beside these may be slow.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails its test on an error in the console, an exception, or a request that leaves the disk."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(_LOCAL) else faults.append(request.url))
    yield page
    context.close()
    assert faults == []


@pytest.fixture(scope="session")
def obstacles() -> Callable[[Page], list[tuple[str, str]]]:
    """What stands in the way of some readers of a page: rule and element of each serious or critical finding of axe."""
    from axe_playwright_python.sync_playwright import Axe

    # Without preload: it would fetch the style sheets, which the pages forbid.
    options = {"resultTypes": ["violations"], "preload": False}

    def find(page: Page) -> list[tuple[str, str]]:
        found = Axe().run(page, options=options).response["violations"]
        serious = [one for one in found if one["impact"] in {"serious", "critical"}]
        return [(one["id"], node["html"]) for one in serious for node in one["nodes"]]

    return find

"""The documentation as a site: built strictly, whole, and without a word to the network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from harness.files import ROOT

PAGES = ROOT / "docs"


def build(checkout: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """The strict build of a checkout's pages."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=checkout,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


class Links(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe") and "src" in found:
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(found["href"])
        self.places.update(found[name] for name in ("id", "name") if name in found)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    # The page for addresses that do not exist knows no place of its own, so its links are those of a server.
    return {path: Links(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_page_of_the_docs_is_there(site: Path) -> None:
    names = {path.stem for path in PAGES.glob("*.md")}
    assert names | {"index"} == {path.stem for path in site.glob("*.html")} - {"404"}


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Links]) -> None:
    loaded = {source for page in pages.values() for source in page.loaded}
    assert loaded
    assert [source for source in loaded if re.match(r"\w+:|//", source)] == []


def test_every_link_leads_somewhere(pages: dict[Path, Links]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address, place = urldefrag(unquote(link))
            if re.match(r"\w+:", address):
                continue
            target = (path.parent / address).resolve() if address else path
            # A fragment without a place is the theme's link to the top.
            if not target.exists() or (place and target in pages and place not in {*pages[target].places, "__top"}):
                broken.append((path.name, link))
    assert broken == []


def test_links_to_nothing_fail_the_build(tmp_path: Path) -> None:
    for name in ("config", "harness", "baselines", "gmr", "analysis", "workflow"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("mkdocs.yml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(PAGES, tmp_path / "docs")
    links = "[a page](nowhere.md) [a file](../config/nothing.yaml) [a place](gmr.md#nothing-of-the-kind)"
    (tmp_path / "docs" / "quick-start.md").write_text(f"# Quick start\n\n{links}\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode == 1
    assert all(name in built.stderr for name in ("nowhere.md", "nothing.yaml", "nothing-of-the-kind"))

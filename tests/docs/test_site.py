"""The documentation as a site: built strictly, whole, and without a word to the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_every_page_of_the_docs_is_there(site: Path) -> None:
    names = {path.stem for path in PAGES.glob("*.md")}
    assert names | {"index"} == {path.stem for path in site.glob("*.html")} - {"404"}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = r"<(?:script|img|iframe)[^>]* src=\"([^\"]+)|<link[^>]* rel=\"(?:stylesheet|icon)\"[^>]* href=\"([^\"]+)"
    found = [one for path in site.rglob("*.html") for one in re.findall(loads, path.read_text())]
    loaded = {source for pair in found for source in pair if source}
    assert loaded
    assert [source for source in loaded if re.match(r"\w+:|//", source)] == []

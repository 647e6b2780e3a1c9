"""The documentation as a site: built strictly, whole, and without a word to the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.files import ROOT


def test_every_page_is_there_and_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    names = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert names | {"index"} == {path.stem for path in site.glob("*.html")} - {"404"}
    loads = r"<(?:script|img|iframe)[^>]* src=\"([^\"]+)|<link[^>]* rel=\"(?:stylesheet|icon)\"[^>]* href=\"([^\"]+)"
    found = [one for path in site.rglob("*.html") for one in re.findall(loads, path.read_text())]
    loaded = {source for pair in found for source in pair if source}
    assert loaded
    assert [source for source in loaded if re.match(r"\w+:|//", source)] == []

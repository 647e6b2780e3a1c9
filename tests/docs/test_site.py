"""The documentation as a site: built strictly, whole, and without a word to the network."""

import os
import re
import subprocess
import sys
from pathlib import Path

from harness.files import ROOT


def test_the_site_is_built_strictly_with_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    given = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(words, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    names = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert names | {"index"} == {path.stem for path in tmp_path.glob("*.html")} - {"404"}
    loads = r"<(?:script|img|iframe)[^>]* src=\"([^\"]+)|<link[^>]* rel=\"(?:stylesheet|icon)\"[^>]* href=\"([^\"]+)"
    pairs = [one for path in tmp_path.rglob("*.html") for one in re.findall(loads, path.read_text())]
    loaded = {source for pair in pairs for source in pair if source}
    assert loaded
    assert [source for source in loaded if re.match(r"\w+:|//", source)] == []

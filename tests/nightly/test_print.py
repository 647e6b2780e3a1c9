"""LaTeX of every artefact of a run compiles and fits its page."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.test_renderers import compiled
from tests.planning import checkout

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(7200)]
# By how many points lines may stick out: so few are not seen.
SEEN = 5


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = checkout(tmp_path_factory.mktemp("whole"))
    words = ["--cores", "2", "--quiet", "all", "--", "reports/embedded/index.html"]
    subprocess.run([sys.executable, "-m", "snakemake", *words], cwd=folder, check=True)
    return folder


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_every_fragment_compiles_and_fits_its_page(run: Path, tmp_path: Path) -> None:
    fragments = sorted((run / "reports" / "embedded").rglob("*.tex"))
    assert len(fragments) > 25
    wide = {}
    for path in fragments:
        text = path.read_text()
        if (picture := path.with_suffix(".pdf")).exists() and r"\begin{table*}" not in text:
            text = rf"\begin{{table*}}\includegraphics{{{picture}}}{os.linesep}{text}\end{{table*}}"
        log = compiled(text, tmp_path)
        assert "Missing character" not in log, path
        wide[path.stem] = max(map(float, re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)), default=0.0)
    assert {name: points for name, points in wide.items() if points > SEEN} == {}

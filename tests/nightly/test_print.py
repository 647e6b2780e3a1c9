"""LaTeX of every artefact of a run compiles and fits its page."""

import shutil
from pathlib import Path

import pytest

from tests.analysis.test_renderers import compiled, sticking_out
from tests.command import snakemake
from tests.planning import checkout

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = checkout(tmp_path_factory.mktemp("whole"))
    snakemake("reports/embedded/index.html", "--quiet", "all", folder=folder, timeout_s=None)
    return folder


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_every_fragment_compiles_and_fits_its_page(run: Path, tmp_path: Path) -> None:
    fragments = sorted((run / "reports" / "embedded").rglob("*.tex"))
    assert len(fragments) > 25
    for path in fragments:
        text = path.read_text()
        if (picture := path.with_suffix(".pdf")).exists() and r"\gmrset" not in text:
            text = rf"\begin{{figure*}}\includegraphics{{{picture}}}{text}\end{{figure*}}"
        log = compiled(text, tmp_path, r"\documentclass[twocolumn]{article}")
        assert "Missing character" not in log, path
        assert sticking_out(log) == [], path

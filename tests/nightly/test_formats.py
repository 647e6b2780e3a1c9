"""What others read: LaTeX of every artefact compiles and fits its page, and Croissant's library reads evidence/."""

import shutil
import subprocess
import venv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.files import ROOT
from tests.analysis.test_renderers import compiled, sticking_out
from tests.command import program, snakemake
from tests.planning import checkout

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(7200)]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_every_fragment_compiles_and_fits_its_page(tmp_path: Path) -> None:
    run = checkout(tmp_path / "run")
    snakemake("reports/embedded/index.html", "--quiet", "all", folder=run, timeout_s=None)
    fragments = sorted((run / "reports" / "embedded").rglob("*.tex"))
    assert len(fragments) > 25
    for path in fragments:
        text = path.read_text()
        if (picture := path.with_suffix(".pdf")).exists() and r"\gmrset" not in text:
            text = rf"\begin{{figure*}}\includegraphics{{{picture}}}{text}\end{{figure*}}"
        log = compiled(text, tmp_path, r"\documentclass[twocolumn]{article}")
        assert "Missing character" not in log, path
        assert sticking_out(log) == [], path


_READ = """
import sys, mlcroissant
data = mlcroissant.Dataset(sys.argv[1])
ctx = data.metadata.ctx
print(ctx.issues.report(), ctx.conforms_to.value, *(sum(1 for _ in data.records(name)) for name in sys.argv[2:]))
"""


def test_every_description_is_valid_and_its_records_are_found(tmp_path: Path) -> None:
    # In an environment of its own, since it installs type stubs of pandas, which mypy would read.
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    install = ["install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt"]
    program(python, "-m", "pip", *install, "mlcroissant==1.1.1", "pyarrow")
    descriptions = sorted((ROOT / "evidence").glob("*/croissant.json"))
    assert descriptions
    for path in descriptions:
        tables = sorted(path.parent.glob("*.parquet"))
        words = [python, "-c", _READ, path, *(table.stem for table in tables)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        rows = [str(pq.read_metadata(table).num_rows) for table in tables]
        assert ended.stdout.split() == ["http://mlcommons.org/croissant/1.1", *rows], ended.stdout + ended.stderr

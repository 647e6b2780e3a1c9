"""Other programs: LaTeX takes every artefact, Croissant's library reads evidence/, two versions of Snakemake run."""

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
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
            # As wide and high as a paper would set it.
            shown = rf"\adjustbox{{max width=\textwidth,max height=.8\textheight}}{{\includegraphics{{{picture}}}}}"
            text = rf"\begin{{figure*}}{shown}{text}\end{{figure*}}"
        log = compiled(text, tmp_path, r"\documentclass[twocolumn]{article}")
        assert "Missing character" not in log, path
        assert sticking_out(log) == [], path


_READ = """
import sys, mlcroissant
data = mlcroissant.Dataset(sys.argv[1])
ctx = data.metadata.ctx
print(ctx.issues.report(), ctx.conforms_to.value, *(sum(1 for _ in data.records(name)) for name in sys.argv[2:]))
"""


def environment(folder: Path, *words: str | Path, paths: Sequence[str] = ()) -> Path:
    """Make an environment that sees further packages, install some with pip, and return its interpreter."""
    venv.create(folder, with_pip=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "further.pth").write_text("\n".join(paths))
    python = folder / "bin" / "python"
    program(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words)
    return python


def test_every_description_is_valid_and_its_records_are_found(tmp_path: Path) -> None:
    # In an environment of its own, since it installs type stubs of pandas, which mypy would read.
    python = environment(tmp_path, "-c", ROOT / "constraints.txt", "mlcroissant==1.1.1", "pyarrow")
    descriptions = sorted((ROOT / "evidence").glob("*/croissant.json"))
    assert descriptions
    for path in descriptions:
        tables = sorted(path.parent.glob("*.parquet"))
        words = [python, "-c", _READ, path, *(table.stem for table in tables)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        rows = [str(pq.read_metadata(table).num_rows) for table in tables]
        assert ended.stdout.split() == ["http://mlcommons.org/croissant/1.1", *rows], ended.stdout + ended.stderr


OLDEST = re.search(r'"snakemake>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1]  # type: ignore[index]
CONFIG = ["--config", "preset=smoke", "methods=[single]", "benchmarks=[gsm_hard]", "limit={test: 4}"]


@pytest.mark.parametrize("version", [f"snakemake=={OLDEST}", "snakemake"])
def test_the_oldest_and_the_newest_snakemake_run_and_link(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = [path for path in sys.path if path.endswith("site-packages")]
    python = environment(tmp_path / "environment", "--upgrade", version, paths=[str(ROOT), *here])
    place, target = checkout(tmp_path / "place"), "reports/errors.md"
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    command = (python, "-m", "snakemake", "--cores", "2")
    assert f"made: {target}" in program(*command, target, *CONFIG, folder=place)
    assert (place / target).readlink() == Path("smoke/errors.md")
    assert "No rule to produce reports/nothing.md; " in program(*command, "reports/nothing.md", folder=place, status=1)

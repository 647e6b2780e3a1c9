"""Tables as LaTeX sees them, each on a page of its own."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from analysis.source import Source
from analysis.table import Table, latex
from harness.files import ROOT
from tests.analysis.reading import main_table

pytestmark = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


def compiled(table: Table, folder: Path) -> str:
    """What pdflatex logged."""
    folder.mkdir(exist_ok=True)
    (folder / "fragment.tex").write_text(latex(table))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", ROOT / "analysis" / "one_table.tex"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    return (folder / "one_table.log").read_text(errors="replace")


def test_the_full_table_fits_its_page(tmp_path, full_run):
    log = compiled(main_table.build(Source.of(full_run)).made, tmp_path)
    assert "(1 page" in log
    # By how many points boxes stick out; a few are not seen.
    assert all(float(points) < 5 for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log))


# At the start of a row a bracket or a star would be taken for an argument of the line break before it.
@pytest.mark.parametrize(
    "start", ["".join(map(chr, range(32, 127))), "[1pt]", "*", "--- '' `` ● ○ − † é 中 \N{GRINNING FACE}"]
)
def test_whatever_stands_in_a_label_compiles(tmp_path, tiny, start):
    made = tiny(start).made
    shown = made.shown.rename(index={"z": start}, level="Method")
    assert "Missing character" not in compiled(dataclasses.replace(made, shown=shown), tmp_path)

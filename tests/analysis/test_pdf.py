"""Fragments as LaTeX sees them."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess

import pytest

from analysis.pdf import compile_fragment
from analysis.source import Source
from harness.errors import UserError
from tests.analysis.reading import Read, main_table, write

needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


def overfull(log: str) -> list[float]:
    """By how many points boxes stick out, the harmless ones left aside."""
    return [points for points in map(float, re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)) if points > 5]


@needs_tex
def test_the_full_table_fits_its_page(tmp_path, full_run):
    files = write(main_table.build(Source.of(full_run)), tmp_path, "main_table")
    log = compile_fragment(files[0], tmp_path / "main_table.pdf")
    assert (tmp_path / "main_table.pdf").read_bytes().startswith(b"%PDF")
    assert "(1 page" in log
    assert not overfull(log)
    assert "Float too large" not in log


@needs_tex
def test_a_narrow_table_keeps_its_size_and_the_pdf_its_bytes(tmp_path, write_cell):
    files = write(main_table.build(Source.of([write_cell()])), tmp_path, "narrow")
    log = compile_fragment(files[0], tmp_path / "a.pdf")
    compile_fragment(files[0], tmp_path / "b.pdf")
    assert not overfull(log)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


@needs_tex
def test_whatever_stands_in_a_cell_compiles(tmp_path, tiny):
    every = "".join(map(chr, range(32, 127)))
    files = write(tiny(f"{every} --- '' `` ● ○ − † é 中 \N{GRINNING FACE}"), tmp_path, "tiny")
    log = compile_fragment(files[0], tmp_path / "tiny.pdf")
    assert "Missing character" not in log


@needs_tex
@pytest.mark.parametrize("start", ["[1pt]", "*", "é", "]"])
def test_a_label_is_no_argument_of_the_line_before_it(tmp_path, tiny, start):
    made = tiny().made
    shown = made.shown.rename(index={"z": f"{start} label"}, level="Method")
    files = write(Read(dataclasses.replace(made, shown=shown)), tmp_path, "tiny")
    compile_fragment(files[0], tmp_path / "tiny.pdf")
    if shutil.which("pdftotext"):
        command = ["pdftotext", "-layout", "tiny.pdf", "-"]
        text = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert ("[U+00E9]" if start == "é" else start) + " label" in text


@needs_tex
def test_a_fragment_that_is_none(tmp_path):
    (tmp_path / "bad.tex").write_text(r"\nosuchcommand")
    with pytest.raises(UserError, match="Undefined control sequence"):
        compile_fragment(tmp_path / "bad.tex", tmp_path / "bad.pdf")
    assert not (tmp_path / "bad.pdf").exists()


def test_without_tex_the_packages_are_named(tmp_path, monkeypatch):
    (tmp_path / "x.tex").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install texlive-latex-base"):
        compile_fragment(tmp_path / "x.tex", tmp_path / "x.pdf")

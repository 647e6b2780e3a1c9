"""A LaTeX fragment as a PDF, to look at without a document around it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import UserError
from harness.files import write_atomically

_PACKAGES = "texlive-latex-base texlive-latex-recommended texlive-latex-extra"
_SECONDS = 120
_WRAPPER = r"""\documentclass[11pt]{article}
\usepackage{booktabs,multirow,graphicx}
\setlength{\textwidth}{277mm}
\pdfsuppressptexinfo=-1 \pdftrailerid{}
\newsavebox{\fragment}
\makeatletter
\renewenvironment{table*}[1][]%
  {\begin{lrbox}{\fragment}\begin{minipage}{\textwidth}\def\@captype{table}}%
  {\end{minipage}\end{lrbox}\global\setbox\fragment\box\fragment}
\makeatother
\begin{document}
\input{fragment.tex}
\pdfpagewidth=297mm
\pdfpageheight=\dimexpr\ht\fragment+\dp\fragment+20mm\relax
\hoffset=\dimexpr10mm-1in\relax \voffset=\hoffset
\shipout\box\fragment
\end{document}
"""


def compile_fragment(tex: Path, pdf: Path) -> str:
    """Compile a fragment on one page as wide as landscape A4 and as high as the table needs.

    The bytes of the PDF depend on the fragment and the installed TeX alone.

    Args:
        tex: A fragment as :func:`analysis.table.write` leaves it.
        pdf: Where the PDF goes, whole or not at all.

    Returns:
        What pdflatex logged.

    Raises:
        UserError: When there is no fragment or no TeX, TeX lacks a package, or the fragment does not compile.
    """
    if not tex.is_file():
        raise UserError(f"{tex}: no such file; expected a rendered table; render it first")
    program = shutil.which("pdflatex")
    if program is None:
        raise UserError(f"pdflatex not found; a PDF needs TeX: on Debian, apt-get install {_PACKAGES}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copyfile(tex, folder / "fragment.tex")
        (folder / "wrapper.tex").write_text(_WRAPPER, encoding="utf-8")
        log = _run(program, folder)
        if not (folder / "wrapper.pdf").is_file():
            raise UserError(
                f"{tex} does not compile: {_complaint(log)}; it needs booktabs, multirow and graphicx: "
                f"on Debian, apt-get install {_PACKAGES}"
            )
        write_atomically(pdf, (folder / "wrapper.pdf").read_bytes())
    return log


def _run(program: str, folder: Path) -> str:
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "wrapper.tex"]
    fixed = {"SOURCE_DATE_EPOCH": "0", "FORCE_SOURCE_DATE": "1", "max_print_line": "1000"}
    try:
        subprocess.run(  # noqa: S603 (a fixed command on files of our own)
            command,
            cwd=folder,
            env={**os.environ, **fixed},
            timeout=_SECONDS,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"! no end after {_SECONDS} s"
    log = folder / "wrapper.log"
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else "! pdflatex left no log"


def _complaint(log: str) -> str:
    lines = [line for line in log.splitlines() if line.startswith("!")]
    return lines[0].removeprefix("!").strip() if lines else "pdflatex made no page"

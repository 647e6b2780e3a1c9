"""Files made from a table: LaTeX, CSV, Markdown and HTML, each byte the same for the same table."""

from __future__ import annotations

from pathlib import Path

from analysis.render import csv, html, latex, markdown
from analysis.tables import Table
from harness.files import write_atomically

_FORMATS = {".tex": latex.render, ".csv": csv.render, ".md": markdown.render, ".html": html.render}


def write(table: Table, folder: Path, name: str) -> list[Path]:
    """Write the table in every format.

    Each file appears whole or not at all; an older one stays until its successor is complete.

    Args:
        table: What to write.
        folder: Made where it does not exist.
        name: File name without ending.

    Returns:
        The files written.
    """
    texts = {folder / f"{name}{ending}": render(table) for ending, render in _FORMATS.items()}
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)

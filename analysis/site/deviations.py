"""The ledger of deviations as a page, and its overview for the index."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup, escape

from analysis.site import frame
from analysis.site.documents import html, parts
from analysis.site.source import Finished
from harness.files import ROOT, write_atomically

SOURCE = ROOT / "docs" / "deviations.md"
_PAGE = "deviations.html"
_OVERVIEW = "Contents"


def write(finished: Finished) -> list[Path]:
    """Write ``site/deviations.html``.

    Returns:
        The file written.

    Raises:
        UserError: The disk is full.
    """
    path = finished.folder / frame.FOLDER / _PAGE
    text = html(SOURCE.read_text(encoding="utf-8"), below=0, tables="")
    page = frame.render("document.html.j2", title="Deviations", here="deviations", site=finished.site, text=text)
    write_atomically(path, page)
    return [path]


def overview(base: str) -> Markup:
    """Which entries concern which method, benchmark and artefact; links lead to a place of the page.

    Args:
        base: From the page that shows it to the folder of the preset.
    """
    found = parts(SOURCE.read_text(encoding="utf-8"))[_OVERVIEW]
    text = str(html(found.partition("\n")[2], below=1, tables=""))
    return Markup(text.replace('href="#', f'href="{escape(base)}{frame.FOLDER}/{_PAGE}#'))  # noqa: S704

"""The index: the run in one page, from what it is to where every number comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.sections import by_section
from analysis.site import account, deviations, frame, pieces
from analysis.site.chunks import write_chunk
from analysis.site.documents import html
from analysis.site.exhibits import Exhibit, exhibits, is_made
from analysis.site.source import Finished
from harness.files import write_atomically

FRONT = "front.html"
_CLAIMS = "claims"
# Reports that are text with a CSV beside it, by name: what a reader calls them.
_DOCUMENTS = {
    "learning": "The study of learning",
    "search_history": "What AFlow tried",
    "flip_rate": "How many replies differ when asked again",
}
# Reports that are text begin with a heading that stands below that of their section.
_BELOW = 2


def write(finished: Finished) -> list[Path]:
    """Write ``index.html``, the same page for the folder above, and the chunks of its charts.

    Args:
        finished: The finished part of a run.

    Returns:
        The files written.

    Raises:
        UserError: A report is not as this version of the suite writes it, or the disk is full.
    """
    made = exhibits(finished)
    context = _context(finished, made)
    pages = {
        finished.folder / frame.FOLDER / FRONT: f"{finished.preset.name}/",
        finished.folder / "index.html": "",
    }
    written = [_chunk(finished, one) for one in made if one.charts]
    for path, base in pages.items():
        site = finished.site.at(base)
        write_atomically(path, frame.render("index.html.j2", title="Report", here="report", site=site, **context))
        written.append(path)
    return written


def _chunk(finished: Finished, one: Exhibit) -> Path:
    folder = finished.folder / frame.FOLDER / "data"
    return write_chunk(folder, one.chunk, [{"traces": chart.traces, "layout": chart.layout} for chart in one.charts])


def _context(finished: Finished, made: Sequence[Exhibit]) -> dict[str, Any]:
    by_key = {one.key: one for one in made}
    main = by_key.pop("main_table", None)
    claims = finished.report(f"{_CLAIMS}.html")
    return {
        "facts": account.facts(finished),
        "main": main,
        "sections": {title: [by_key[key] for key in keys] for title, keys in by_section(by_key).items()},
        "claims": pieces.read_claims(claims) if claims else None,
        "claims_files": _files(finished, _CLAIMS, ("html", "md", "csv")),
        "documents": _documents(finished),
        "deviations": deviations.overview,
        "spent": account.spent(finished),
        "cells": account.cells(finished),
        "backbones": account.backbones(finished),
        "questions": account.questions(finished),
        "not_made": _not_made(finished),
        "missing": [str(cell) for cell in finished.missing],
    }


def _documents(finished: Finished) -> list[dict[str, Any]]:
    found = []
    for name, title in _DOCUMENTS.items():
        path = finished.report(f"{name}.md")
        if path:
            text = html(path.read_text(encoding="utf-8"), below=_BELOW)
            files = _files(finished, name, ("md", "csv"))
            found.append({"key": name, "title": title, "text": text, "files": files})
    return found


def _files(finished: Finished, name: str, endings: Sequence[str]) -> list[str]:
    return [f"{name}.{ending}" for ending in endings if finished.report(f"{name}.{ending}")]


def _not_made(finished: Finished) -> list[tuple[str, str]]:
    """Every artefact that is not there yet, with the command that makes it."""
    reports = finished.folder.as_posix()
    return [
        (one.key, f"snakemake --cores all {reports}/{one.files[-1]}")
        for one in finished.artefacts
        if not is_made(one, finished)
    ]

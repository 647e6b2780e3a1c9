"""The reports of a preset: which there are, and how each is made from its finished cells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from analysis import registry
from analysis.registry import Artefact
from harness.files import digest
from harness.runner import config, config_hash, layout
from harness.runner.config import Preset


def artefacts_of(preset: Preset) -> list[str]:
    """Return the artefacts of a whole run by key: those that the preset names, else all that are not optional.

    Raises UserError for a name that the preset has wrong.
    """
    known = registry.artefacts()
    names = preset.artefacts or [name for name, artefact in known.items() if not artefact.optional]
    return [name for name in names if registry.artefact(name).applies_to(preset)]


def all_files() -> list[str]:
    """Return the names of all files of artefacts, PDFs of tables included, below the folder of a preset."""
    artefacts = registry.artefacts().values()
    files = [file for artefact in artefacts for file in artefact.files]
    return [*files, *(f"{artefact.key}.pdf" for artefact in artefacts if artefact.kind == "table"), *registry.CLAIMS]


def files_of(preset: Preset) -> list[str]:
    """Return the names of the files of a whole run but the page; one that names its artefacts has no claims."""
    files = [file for name in artefacts_of(preset) for file in registry.artefact(name).files]
    return [*files, *([] if preset.artefacts else registry.CLAIMS)]


def about_claims(preset: Preset) -> list[Artefact]:
    """Return the artefacts whose cells and timings a claim may be about."""
    return [one for one in registry.artefacts().values() if (one.cells or one.timings) and one.applies_to(preset)]


def made_of(name: str, preset: Preset) -> str:
    """Return the digest of what decides, besides the content of its inputs, what a report shows."""
    settings: Any
    match name:
        case "claims":
            settings = [one.choice(preset) for one in about_claims(preset)]
            code = registry.code_of_report("config/published.yaml")
        case "inspect":
            settings, code = list(map(str, config.cells(preset))), registry.code_of_report()
        case "page":
            shown = [registry.artefact(key) for key in artefacts_of(preset)]
            settings = [preset.description, [[one.choice(preset), one.title, one.section] for one in shown]]
            code = registry.code_of_report("docs/deviations.md", "config/licences.yaml")
        case _:
            settings, code = registry.artefact(name).choice(preset), registry.artefact(name).code()
    return digest([settings, code])


def note_made(name: str, preset: Preset) -> None:
    """Write what a report is made of, once its files are there."""
    config_hash.note_made_of(layout.made_of(preset.name, f"reports/{name}"), made_of(name, preset))


def write(name: str, preset: Preset) -> list[Path]:
    """Make a report, a key of :data:`WRITERS` or ``config/artefacts.yaml``; return its files, or raise UserError."""
    if name in WRITERS:
        files = WRITERS[name](preset)
    else:
        from analysis import table

        files = table.write(registry.artefact(name).build(preset), layout.REPORTS / preset.name, name)
    note_made(name, preset)
    return files


def _claims(preset: Preset) -> list[Path]:
    """Write the report on the claims from whatever cells are finished."""
    from analysis.claims.report import build, source_of
    from analysis.table import write

    return write(build(source_of(preset)), layout.REPORTS / preset.name, "claims")


def _page(preset: Preset) -> list[Path]:
    """Write the page from the reports that are finished; it says how to make the rest."""
    from analysis.page import write

    page = layout.report(preset.name, "index.html")
    if lacking := write(preset, artefacts_of(preset)):
        logging.info("%d further tables and figures can be made: snakemake --cores all %s", len(lacking), page)
    return [page]


WRITERS: Mapping[str, Callable[[Preset], list[Path]]] = {"claims": _claims, "page": _page}

"""The reports of a preset: which there are, and how each is made from its finished cells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from analysis import registry
from harness.files import ROOT
from harness.runner import config, layout
from harness.runner.config import Preset

_OF_A_STUDY = ("main_table", "costs", "leak_report")


def artefacts_of(preset: Preset) -> list[str]:
    """Return the artefacts of a whole run by key: all that the preset can have; of a study those about its cells."""
    known = registry.artefacts()
    return [name for name in (_OF_A_STUDY if is_study(preset) else known) if known[name].applies_to(preset)]


def is_study(preset: Preset) -> bool:
    """Return whether a preset is a study, which has a report of its own and no claims."""
    return (ROOT / "config" / "studies" / f"{preset.name}.yaml").exists()


def write(name: str, preset: Preset) -> list[Path]:
    """Make a report, a key of :data:`WRITERS` or ``config/artefacts.yaml``; return its files, or raise UserError."""
    if name in WRITERS:
        return WRITERS[name](preset)
    from analysis import table

    return table.write(registry.artefact(name).build(preset), layout.REPORTS / preset.name, name)


def _claims(preset: Preset) -> list[Path]:
    """Of whatever cells are finished."""
    from analysis.claims.report import build
    from analysis.source import Source
    from analysis.table import write

    cells = [layout.cell(preset.name, cell) for cell in registry.cells_of(preset)]
    timed = dict.fromkeys(cell for one in registry.artefacts().values() for cell in one.timings_of(preset))
    timings = [layout.timing(preset.name, cell) for cell in timed]
    source = Source(
        cells=tuple(folder for folder in cells if (folder / "run.json").is_file()),
        preset=preset,
        timings=tuple(folder for folder in timings if (folder / "timing.json").is_file()),
    )
    return write(build(source), layout.REPORTS / preset.name, "claims")


def _learning(preset: Preset) -> list[Path]:
    from analysis.learning.report import build, write
    from analysis.learning.study import path_of

    cells = [layout.cell(preset.name, cell) for cell in config.cells(preset)]
    return write(build(cells, path_of(preset.name)), layout.REPORTS / preset.name)


def _page(preset: Preset) -> list[Path]:
    """Of whatever is finished; it says how to make the rest."""
    from analysis.page import write

    page = layout.report(preset.name, "index.html")
    if lacking := write(preset, artefacts_of(preset)):
        logging.info("%d further tables and figures can be made: snakemake --cores all %s", len(lacking), page)
    return [page]


WRITERS: Mapping[str, Callable[[Preset], list[Path]]] = {"claims": _claims, "learning": _learning, "page": _page}

"""Which artefacts of a run have been made, and which were made before the cells behind them."""

from __future__ import annotations

import enum
from pathlib import Path

from harness import layout
from harness.config import Preset
from paper import registry
from paper.registry import Artefact
from workflow.shown import shown


class Made(enum.StrEnum):
    """Where an artefact stands."""

    MADE = "made"
    OUTDATED = "outdated"
    NOT_MADE = "not made"


def artefacts_of(preset: Preset) -> dict[str, Made]:
    """Every artefact of a preset by its name, and where it stands.

    Outdated is one that is older than something it is made from, or lacks it. Snakemake knows more: it also makes one
    again whose code or configuration has changed (`gmr run --dry-run`).
    """
    return {name: _made(registry.artefact(name), preset) for name in shown(preset)}


def _made(artefact: Artefact, preset: Preset) -> Made:
    files = [layout.report(preset.name, name) for name in artefact.files]
    if not all(file.exists() for file in files):
        return Made.NOT_MADE
    oldest = min(file.stat().st_mtime for file in files)
    return Made.MADE if all(_is_older(path, oldest) for path in artefact.inputs(preset)) else Made.OUTDATED


def _is_older(path: Path, than: float) -> bool:
    return path.exists() and path.stat().st_mtime <= than

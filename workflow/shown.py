"""What a whole run shows: every artefact it can have, or of a study the few that are about its cells."""

from __future__ import annotations

from analysis import registry
from harness.files import ROOT
from harness.runner.config import Preset

_OF_A_STUDY = ("main_table", "costs", "leak_report")


def shown(preset: Preset) -> list[str]:
    """The artefacts of a preset, by key."""
    known = registry.artefacts()
    return [name for name in (_OF_A_STUDY if is_study(preset) else known) if known[name].applies_to(preset)]


def is_study(preset: Preset) -> bool:
    """Whether a preset is a study, which has a report of its own and no claims."""
    return (ROOT / "config" / "studies" / f"{preset.name}.yaml").exists()

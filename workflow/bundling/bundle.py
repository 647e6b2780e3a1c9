"""Making a bundle of a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.files import ROOT, writing
from harness.runner import layout
from harness.runner.config import Preset
from workflow.bundling import archive, derived
from workflow.bundling.archive import Member
from workflow.bundling.contents import collect, files
from workflow.bundling.manifest import facts
from workflow.bundling.source import configuration


def bundle(preset: Preset, artefacts: Sequence[str], out: Path, *, questions: bool) -> dict[str, Any]:
    """Write everything of a finished run that its artefacts follow from into one file.

    Args:
        preset: The run.
        artefacts: Keys of ``config/artefacts.yaml``.
        out: The file.
        questions: Whether to write the questions, and the prompts in which they stand.

    Returns:
        The manifest.

    Raises:
        UserError: The run is incomplete, something of it is damaged, or the disk is full.
    """
    contents = collect(preset, artefacts)
    with writing(out), TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as made:
        folder = Path(made)
        members = [
            *(Member(path.as_posix(), path) for path in files(contents)),
            *derived.questions(contents, folder, whole=questions),
            *derived.logs(contents, folder, whole=questions),
            *_configuration(preset),
        ]
        return archive.write(out, facts(contents, questions=questions), members)


def _configuration(preset: Preset) -> list[Member]:
    """For whoever opens the archive by hand: a replay reads that of its checkout, which has to be the same."""
    paths = [*configuration(), ROOT / "config" / "presets" / f"{layout.base(preset.name)}.yaml"]
    return [Member(path.relative_to(ROOT).as_posix(), path) for path in paths]

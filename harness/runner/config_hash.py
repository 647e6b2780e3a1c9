"""Whether outputs of jobs match today's settings, code and questions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import yaml

from harness.errors import UserError
from harness.files import digest, write_atomically
from harness.fingerprint import fingerprint_of
from harness.runner import layout
from harness.runner.results import read_finished
from harness.runner.run import CellConfig, Run

_HEAD = "# The settings of the last run of this preset, overrides included; its jobs read them.\n"


def is_current(cell: CellConfig) -> bool:
    """Return whether all files of a cell exist and match the present settings, code and questions."""
    needed = {*layout.cell_files(learned=cell.entry.trained)}
    try:
        read_finished(cell)
        return needed <= {*os.listdir(layout.cell(cell.run.name, cell))}
    except UserError:
        return False


def write_settings(run: Run) -> None:
    """Write the settings of a run for its jobs; an equal file keeps its time."""
    text = _HEAD + yaml.safe_dump(run.settings, sort_keys=False, width=120, allow_unicode=True)
    path = layout.settings(run.name)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text)


def made_of_data(run: Run, benchmark: str) -> str:
    """Return the digest of all that decides the prepared questions of a benchmark."""
    return digest([run.questions_of(benchmark), fingerprint_of("harness/benchmarks", "config/benchmarks.yaml")])


def note_made_of(path: Path, made_of: str) -> None:
    """Write the digest of the inputs of a job, once all its files exist."""
    write_atomically(path, f"{made_of}\n")


def is_made_of(path: Path, made_of: str, files: Iterable[Path]) -> bool:
    """Return whether all files of a job exist, made of the inputs with this digest."""
    try:
        return path.read_text(encoding="utf-8").strip() == made_of and all(file.exists() for file in files)
    except OSError:
        return False

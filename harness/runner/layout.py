"""Layout of ``results/`` and ``reports/``."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.database import CALL_LOG, machine_folder
from harness.database import VECTORS as VECTORS
from harness.files import ROOT

POOL = "pool"  # in place of a backbone: all of the preset
SINGLE = "single"  # the method that asks a backbone once
RESULTS = Path("results")
REPORTS = Path("reports")
_ANSWERED = ("run.json", "items.parquet", "calls.parquet", "decisions.parquet")
CHECKPOINT = "trained.safetensors"
# Clock and pace of a cell, part of no identity.
TIMING = "timing.json"
_LEARNED = ("training.parquet", "training_calls.parquet", "training_decisions.parquet", CHECKPOINT)


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """Job: a method on a benchmark with one backbone (or the pool) and one seed."""

    method: str
    benchmark: str
    backbone: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method} {self.benchmark} {self.backbone} seed {self.seed}"


def run_config() -> Path:
    """Return the configuration of Snakemake: that of the current folder, such as a bundle's, else the checkout's."""
    path = Path("config/config.yaml")
    return path if path.exists() else ROOT / path


def settings(preset: str) -> Path:
    """Return the settings of a run, which its jobs read."""
    return RESULTS / preset / "config.yaml"


def manifest(preset: str, benchmark: str) -> Path:
    """Return the file that identifies a benchmark's data and splits."""
    return RESULTS / preset / "data" / f"{benchmark}.json"


def items(preset: str, benchmark: str) -> Path:
    """Return the file of normalised questions."""
    return RESULTS / preset / "data" / f"{benchmark}.items.jsonl"


def questions(preset: str, *benchmarks: str) -> list[Path]:
    """Return the manifests and the questions of benchmarks."""
    return [path(preset, benchmark) for benchmark in benchmarks for path in (manifest, items)]


def served(preset: str, benchmark: str) -> Path:
    """Return the file of served models, checked before the first call about a benchmark."""
    return RESULTS / preset / "served" / f"{benchmark}.json"


def tree(preset: str, benchmark: str) -> Path:
    """Return the folder of an enumeration of first steps."""
    return RESULTS / preset / "tree" / benchmark


def cell(preset: str, of: Cell) -> Path:
    """Return the folder of a cell."""
    return RESULTS / preset / name_of(of)


def name_of(of: Cell) -> str:
    """Return the folder of a cell, below that of its preset."""
    return f"cells/{of.method}/{of.benchmark}/{of.backbone}/seed{of.seed}"


def identity(preset: str, job: str) -> Path:
    """Return the identity file of a job."""
    return RESULTS / preset / "identity" / f"{job}.json"


def audit(preset: str) -> Path:
    """Return the result of an audit of a finished run."""
    return RESULTS / preset / "audit.json"


def cell_files(*, learned: bool) -> list[str]:
    """Return the names of the files that hold the results of a cell, of a method that learns or of another."""
    return [*_ANSWERED, *(_LEARNED if learned else ())]


def logs(preset: str) -> Iterator[Path]:
    """Return the call logs of a preset, those of earlier runs included."""
    return (RESULTS / preset).rglob(CALL_LOG)


def cache() -> Path:
    """Return the cache of this machine: embeddings, outcomes of programs, verdicts on equal answers."""
    return machine_folder() / f"{socket.gethostname()}.sqlite"


def cell_of(folder: Path) -> Cell | None:
    """Return the cell of a folder, or None if it is no cell's."""
    match folder.parts:
        case (_, _, "cells", method, benchmark, backbone, seed) if seed.removeprefix("seed").isdecimal():
            return Cell(method, benchmark, backbone, int(seed.removeprefix("seed")))
    return None


def cells(preset: str) -> list[Cell]:
    """Return the cells of a preset that have a folder, finished or not."""
    folders = sorted((RESULTS / preset).glob("cells/*/*/*/seed*"))
    return [cell for folder in folders if (cell := cell_of(folder)) is not None]


def report(preset: str, name: str) -> Path:
    """Return the file of an artefact."""
    return REPORTS / preset / name

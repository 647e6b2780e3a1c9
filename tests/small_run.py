"""Small runs of the smoke preset in the working folder, and their output files."""

import asyncio
from pathlib import Path
from typing import Any

from harness.benchmarks.prepare import prepare
from harness.runner import cell, layout
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.run import Run
from tests.harness.llm.logged import content

SINGLE = Cell("single", "gsm_hard", "llama-3.2-3B", 0)
GMR = Cell("gmr", "gsm_hard", "pool", 0)


def results(folder: Path, *parts: str) -> dict[str, bytes]:
    """Return the content of every file of results below parts of a folder; of call logs the rows."""
    # What no identity of a run covers: clock, host, latency, pace, locks.
    passing = ("attempts.jsonl", "timing.json", "config.yaml", ".lock", ".log", "-journal")
    paths = [path for part in parts for path in sorted((folder / part).rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): content(path) for path in paths if not path.name.endswith(passing)}


def smoke(**changes: Any) -> Run:
    """Smoke preset with six test questions and one training question."""
    limit = {"train": 1, "test": 6, "epochs": 1}
    return resolve("smoke", {"benchmarks": ["gsm_hard"], "limit": limit, **changes})


def prepare_questions(preset: str = "smoke", *benchmarks: str) -> None:
    """Prepare the embedded questions of benchmarks, gsm_hard unless others are named."""
    for key in benchmarks or ("gsm_hard",):
        prepare(key, "embedded", "official", layout.items(preset, key), layout.manifest(preset, key))


def make(preset: Run, *cells: Cell) -> None:
    """Prepare the questions of a preset, and run some of its cells."""
    prepare_questions(preset.name, *preset.benchmarks)
    for each_cell in cells:
        asyncio.run(cell.run(plan(preset, each_cell)))

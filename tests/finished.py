"""A small finished run of all ten methods with reports and a page, made once per test run."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from analysis import registry
from cli import reports
from harness.runner import cell
from harness.runner.layout import Cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.run import Run
from tests.fake_encoder import FakeEncoder
from tests.small_run import prepare_questions

BENCHMARK = "humaneval"
SETTINGS = {"benchmarks": [BENCHMARK], "backbones": ["qwen-2.5-14B"], "limit": {"train": 3, "test": 3, "epochs": 1}}
REPORTS = ("main_table", "costs", "he_cost", "pareto_he", "gate_entropy", "training_curves")


def preset() -> Run:
    return resolve("smoke", SETTINGS)


def cells(of: Run | None = None) -> list[Cell]:
    """Return the cells of the main table and the Pareto figure; the other artefacts of the preset lack theirs."""
    return list(dict.fromkeys([*(of or preset()).cells(), *registry.artefact("pareto_he").cells_of(of or preset())]))


def settled() -> Run:
    """Write the settings of the preset that Snakemake would run in the working folder, and return it."""
    settings = yaml.safe_load(Path("config/config.yaml").read_text())
    preset = resolve(settings.pop("preset"), settings)
    preset.write_settings()
    return preset


def finish(folder: Path, names: Sequence[str] = REPORTS, **changes: object) -> Path:
    """Run every cell in a folder, in this process, and make some reports."""
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "config.yaml").write_text(yaml.safe_dump({"preset": "smoke", **SETTINGS, **changes}))
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.runner.resources.SentenceEncoder", FakeEncoder)
        settled_preset = settled()
        settled_preset.identity_of_data(BENCHMARK).write()
        prepare_questions("smoke", BENCHMARK)
        for each_cell in cells(settled_preset):
            asyncio.run(cell.run(plan(settled_preset, each_cell)))
        for name in names:
            reports.write(name, settled_preset)
    return folder


def base_of(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder of all workers."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def shared(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the run, made by whichever worker asks first; read it, do not write."""
    base = base_of(factory)
    folder, unfinished = base / "finished", base / "finished.part"
    with FileLock(base / "finished.lock"):
        if not folder.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            with contextlib.chdir(finish(unfinished, (*REPORTS, "claims"))):
                reports.write("page", preset())
            unfinished.rename(folder)
    return folder

"""A small finished run of all ten methods with reports and a page, made once per test run."""

import asyncio
import contextlib
import os
import shutil
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from analysis import registry
from cli import reports
from harness.runner import cell
from harness.runner.plan import plan
from harness.runner.preset import resolve
from harness.runner.run import Run
from tests.fake_encoder import FakeEncoder
from tests.small_run import prepare_questions

BENCHMARK = "humaneval"
SETTINGS = {"benchmarks": [BENCHMARK], "backbones": ["qwen-2.5-14B"], "limit": {"train": 3, "test": 3, "epochs": 1}}
REPORTS = ("main_table", "he_cost", "pareto_he", "gate_entropy", "training_curves")


def preset() -> Run:
    return resolve("smoke", SETTINGS)


def base_of(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder of all workers."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def shared(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the run, made by whichever worker asks first; read it, do not write."""
    folder = base_of(factory) / "finished"
    unfinished = folder.with_suffix(".part")
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            (unfinished / "config").mkdir(parents=True)
            (unfinished / "config" / "config.yaml").write_text(yaml.safe_dump({"preset": "smoke", **SETTINGS}))
            with contextlib.chdir(unfinished), pytest.MonkeyPatch.context() as patch:
                patch.setattr("harness.runner.resources.SentenceEncoder", FakeEncoder)
                # The cells of the main table and of the Pareto figure, and reports. Other artefacts lack their cells.
                run = preset()
                run.write_settings()
                run.identity_of_data(BENCHMARK).write()
                prepare_questions("smoke", BENCHMARK)
                for each in dict.fromkeys([*run.cells(), *registry.artefact("pareto_he").cells_of(run)]):
                    asyncio.run(cell.run(plan(run, each)))
                for name in (*REPORTS, "claims", "page"):
                    reports.write(name, run)
            unfinished.rename(folder)
    return folder

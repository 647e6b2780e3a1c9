"""Make a small run in the working folder, its page and its logs of Inspect, in one process: imports are slow."""

from __future__ import annotations

import asyncio

from harness.benchmarks.prepare import prepare
from harness.runner import cell, config, layout
from harness.runner.calibration import calibrate
from harness.runner.config import Cell, Preset
from harness.runner.plan import plan
from workflow import reports
from workflow.commands import exports

BENCHMARK = "gsm_hard"
SETTINGS = {
    "benchmarks": [BENCHMARK],
    "methods": ["cot", "aflow", "puppeteer", "masrouter", "gmr"],
    "backbones": ["llama-3.2-3B", "qwen-2.5-14B"],
    "limit": {"train": 4, "test": 8, "epochs": 2},
}
REPORTS = ("main_table", "costs", "gsm_cost", "pareto_gsm", "gate_entropy", "training_curves")


def preset() -> Preset:
    """The run: every method that learns, and one that does not."""
    return config.preset("smoke", SETTINGS)


def cells() -> list[Cell]:
    """Its cells; the other artefacts of the preset lack theirs."""
    return config.cells(preset())


async def _run() -> None:
    prepare(BENCHMARK, "embedded", "official", layout.items("smoke", BENCHMARK), layout.manifest("smoke", BENCHMARK))
    await calibrate(preset())
    for one in cells():
        await cell.run(plan(preset(), one))


def _reports() -> None:
    for name in (*REPORTS, "claims", "search_history"):
        reports.write(name, preset())
    exports.export("smoke", None, [f"{key}={value}" for key, value in SETTINGS.items()])
    reports.write("page", preset())


if __name__ == "__main__":
    layout.RESULTS.mkdir()
    asyncio.run(_run())
    _reports()

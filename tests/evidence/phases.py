"""Where the processor time of a run goes, cell by cell, with nothing cached.

    python -m tests.evidence.phases [--preset smoke] [--method gmr ...] [--benchmark gsm_hard ...]

Runs the cells of a preset one after the other in a folder of its own, each in a process of its own in which the phases
are timed, in processor time of the thread that does the work. Programs and Math-Verify are processes of the cell.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import importlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from harness.files import ROOT
from harness.runner import config, layout
from tests.evidence import smoke

# What is timed: the name of the phase, the module, and what in it.
_TIMED = [
    ("simulated replies", "harness.simulator.endpoint", "SimulatedEndpoint.chat"),
    ("sentence embeddings", "harness.llm.encoder", "SentenceEncoder.encode"),
    ("decisions", "gmr.router", "Snapshot._contexts_of"),
    *(
        ("decisions", "gmr.router", f"Snapshot.{name}")
        for name in ("roles", "backbones", "retrieval", "write", "advance")
    ),
    ("decisions", "baselines.masrouter.router", "Router.decide"),
    ("decisions", "baselines.puppeteer.policy", "Snapshot.log_probs"),
    *(("updates", f"{room}.method", "learn") for room in ("gmr", "baselines.masrouter", "baselines.puppeteer")),
    ("call log", "harness.llm.call_log", "CallLog._commit"),
    ("call log", "harness.llm.call_log", "CallLog.get"),
    ("tables", "harness.runner.cell", "write"),
]
PHASES = [*dict.fromkeys(name for name, _, _ in _TIMED), "programs and Math-Verify", "everything else"]


def _time(spent: Counter[str], phase: str, module: str, name: str) -> None:
    *owners, last = name.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    plain: Callable[..., Any] = getattr(owner, last)

    @functools.wraps(plain)
    def timed(*arguments: Any, **keywords: Any) -> Any:
        began = time.thread_time()
        try:
            return plain(*arguments, **keywords)
        finally:
            spent[phase] += time.thread_time() - began

    setattr(owner, last, timed)


def _one(preset: str, cell: config.Cell) -> None:
    """Run a cell here, and print what it spent."""
    from harness.runner.cell import run
    from harness.runner.plan import plan

    spent: Counter[str] = Counter()
    for phase, module, name in _TIMED:
        _time(spent, phase, module, name)
    asyncio.run(run(plan(config.preset(preset), cell)))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent["programs and Math-Verify"] = children.ru_utime + children.ru_stime
    spent["everything else"] = time.process_time() - sum(spent[phase] for phase in PHASES[:-2])
    print(orjson.dumps(spent).decode())


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="smoke")
    parser.add_argument("--method", action="append", help="only this one; may be repeated")
    parser.add_argument("--benchmark", action="append", help="only this one; may be repeated")
    parser.add_argument("--cell", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.cell:
        *names, seed = asked.cell
        _one(asked.preset, config.Cell(*names, int(seed)))
        return
    spent: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        folder = smoke.checkout(Path(name, "run"))
        made = [sys.executable, "-m", "snakemake", str(layout.world(asked.preset)), "--cores", "2", "--quiet", "all"]
        subprocess.run(made, cwd=folder, check=True, capture_output=True)
        for cell in config.cells(config.preset(asked.preset)):
            if cell.method in (asked.method or [cell.method]) and cell.benchmark in (
                asked.benchmark or [cell.benchmark]
            ):
                spent.setdefault(cell.method, Counter()).update(_in_a_process(folder, asked.preset, cell))
    print(f"| Processor seconds | {' | '.join(PHASES)} | all |\n|---{'|---:' * (len(PHASES) + 1)}|")
    total = sum(spent.values(), Counter())
    for method, its in {**spent, "all": total}.items():
        print(f"| {method} | {' | '.join(f'{its[phase]:.1f}' for phase in PHASES)} | {sum(its.values()):.1f} |")


def _in_a_process(folder: Path, preset: str, cell: config.Cell) -> dict[str, float]:
    words = [cell.method, cell.benchmark, cell.backbone, str(cell.seed)]
    command = [sys.executable, "-m", "tests.evidence.phases", "--preset", preset, "--cell", *words]
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True
    )
    found: dict[str, float] = orjson.loads(ended.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    _main()

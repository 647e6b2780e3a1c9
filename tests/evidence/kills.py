"""The smoke preset killed again and again: it must go on each time, ask nothing twice, and end in the same bytes.

    python -m tests.evidence.kills [--kills 25] [--seed 0]

Moments are drawn; at each of them Snakemake and all its jobs get SIGKILL at once.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.evidence import smoke

# From the start of a run to its kill: less would mostly kill the planning of the DAG.
_SOONEST_S, _LATEST_S = 5.0, 20.0
_LATENCY_S = "0.3"


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    moments = random.Random(asked.seed)
    with tempfile.TemporaryDirectory(prefix="evidence-") as name:
        calm, killed = (smoke.checkout(Path(name, one)) for one in ("calm", "killed"))
        smoke.run(calm)
        with smoke.simulated(calm, "--latency", _LATENCY_S) as url:
            again, finished, kills = 0, 0, 0
            while kills < asked.kills:
                kept = smoke.logged(killed)
                asked_before = {cell: smoke.asked(cell) for cell in kept}
                ended = _killed(killed, url, moments.uniform(_SOONEST_S, _LATEST_S))
                again += sum(
                    key in keys for cell, keys in kept.items() for key in smoke.asked(cell)[len(asked_before[cell]) :]
                )
                kills += not ended
                finished += ended
                if ended:
                    _forget_a_cell(killed)
            smoke.run(killed, environment={"GMR_SIMULATED_URL": url})
        found = smoke.differences(calm, killed)
    print(f"Kills: {kills}. Runs that ended before their kill, and lost a cell to go on: {finished}.")
    print(f"Calls that the log held and that were asked again: {again}.")
    print(f"Files that differ from those of the undisturbed run: {len(found)}.")
    print(*found, sep="\n")
    sys.exit(bool(found or again))


def _killed(folder: Path, url: str, after_s: float) -> bool:
    """Start a run and kill it after so many seconds; whether it ended before."""
    environment = {**os.environ, "GMR_SIMULATED_URL": url}
    process = subprocess.Popen(
        smoke.command("--rerun-incomplete", "--nolock"),
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(after_s)
        return True
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # Jobs in sessions of their own notice that Snakemake is gone.
        time.sleep(1)
        return False


def _forget_a_cell(folder: Path) -> None:
    """Take a finished cell back, calls and all, so that there is something left to do."""
    runs = sorted((folder / "results" / "smoke" / "cells").rglob("run.json"))
    for path in runs[0].parent.iterdir() if runs else ():
        if path.is_file():
            path.unlink()


if __name__ == "__main__":
    _main()

"""The smoke preset, killed at random moments, asks nothing twice and ends in the same bytes as undisturbed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from harness.files import ROOT
from harness.runner.preset import resolve
from tests.harness.llm.logged import calls_of
from tests.planning import checkout
from tests.small_run import results

TARGETS = ("reports/smoke/main_table.tex", "reports/smoke/costs.md", "reports/smoke/errors.md")
KILLS = 25
# From the start of a run to its kill: less would mostly kill the planning of the DAG.
SOONEST_S, LATEST_S = 5.0, 20.0


@contextmanager
def simulated(latency_s: float = 0.0) -> Iterator[str]:
    """Serve the smoke preset with a mean latency while the block runs; yield the URL."""
    command = [sys.executable, "-m", "tests.faults", "smoke", str(latency_s)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def start(folder: Path, url: str) -> subprocess.Popen[bytes]:
    """Start Snakemake for all targets on two cores, against a simulated server."""
    entry = {"url": url, "max_in_flight": 256}
    (folder / "endpoints.json").write_bytes(orjson.dumps(dict.fromkeys(resolve("smoke").backbones, entry)))
    environment = {**os.environ, "GMR_ENDPOINTS": str(folder / "endpoints.json")}
    options = ["--cores", "2", "--quiet", "all", "--rerun-incomplete", "--nolock", "--config", "endpoints=served"]
    command = [sys.executable, "-m", "snakemake", *TARGETS, *options]
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)


def asked(cell: Path) -> list[str]:
    """Return the keys of all attempts of a cell, with repetitions."""
    path = cell / "attempts.jsonl"
    content = path.read_bytes() if path.exists() else b""
    # The last line may be torn: another process was killed while it wrote.
    return [orjson.loads(line)["key"] for line in content.split(b"\n")[:-1]]


def logged(folder: Path, copy: Path) -> dict[Path, set[str]]:
    """Return the keys in the log of every cell, read from a copy, since opening a log repairs it."""
    shutil.copytree(folder / "results", copy / "results")
    keys = {folder / path.parent.relative_to(copy): {*calls_of(path)} for path in copy.rglob("calls.sqlite")}
    shutil.rmtree(copy)
    return keys


def killed(process: subprocess.Popen[bytes], after_s: float) -> bool:
    """Kill Snakemake and all its jobs after so many seconds; False where it ended before."""
    try:
        process.wait(after_s)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # Jobs in sessions of their own notice that Snakemake is gone.
        time.sleep(1)
        return True


@pytest.mark.nightly
def test_kills_lose_nothing_ask_nothing_twice_and_end_in_the_same_bytes(tmp_path: Path) -> None:
    calm, disturbed = (checkout(tmp_path / name) for name in ("calm", "disturbed"))
    (disturbed / "results").mkdir()
    with simulated() as url:
        assert start(calm, url).wait() == 0
    moments, kills = random.Random(0), 0
    with simulated(0.3) as url:
        while kills < KILLS:
            kept = logged(disturbed, tmp_path / "copy")
            before = {cell: len(asked(cell)) for cell in kept}
            if killed(start(disturbed, url), moments.uniform(SOONEST_S, LATEST_S)):
                kills += 1
            else:  # Something has to be left to do.
                shutil.rmtree(min((disturbed / "results" / "smoke" / "cells").iterdir()))
            assert [key for cell, keys in kept.items() for key in asked(cell)[before[cell] :] if key in keys] == []
        assert start(disturbed, url).wait() == 0
    files, others = (
        results(folder, "results/smoke/cells", "results/smoke/data", "reports") for folder in (calm, disturbed)
    )
    assert sorted(name for name in {*files, *others} if files.get(name) != others.get(name)) == []

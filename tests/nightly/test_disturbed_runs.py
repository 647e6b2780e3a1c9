"""The smoke preset with kills and faulty servers gives the same results as undisturbed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from harness.files import ROOT
from harness.llm.call_log import CallLog
from harness.runner.preset import resolve
from tests.planning import checkout
from tests.small_run import results

pytestmark = pytest.mark.nightly

TARGETS = ("reports/smoke/main_table.tex", "reports/smoke/costs.md", "reports/smoke/errors.md")
KILLS = 25
# From the start of a run to its kill: less would mostly kill the planning of the DAG.
SOONEST_S, LATEST_S = 5.0, 20.0


@contextmanager
def simulated(latency_s: float = 0.0, faulty: float = 0.0) -> Iterator[str]:
    """Serve the smoke preset with a mean latency and a share of faults while the block runs; yield the URL."""
    command = [sys.executable, "-m", "tests.faults", "smoke", str(latency_s), str(faulty)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def start(folder: Path, url: str, *words: str) -> subprocess.Popen[bytes]:
    """Start Snakemake for all targets on two cores, against a simulated server."""
    entry = {"url": url, "max_in_flight": 256}
    (folder / "endpoints.json").write_bytes(orjson.dumps(dict.fromkeys(resolve("smoke").backbones, entry)))
    options = ["--cores", "2", "--quiet", "all", "--config", "endpoints=served", *words]
    environment = {**os.environ, "GMR_ENDPOINTS": str(folder / "endpoints.json")}
    command = [sys.executable, "-m", "snakemake", *TARGETS, *options]
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)


def differences(folder_a: Path, folder_b: Path) -> list[str]:
    parts = ("results/smoke/cells", "results/smoke/data", "reports")
    files, others = (results(folder, *parts) for folder in (folder_a, folder_b))
    return sorted(name for name in files.keys() | others.keys() if files.get(name) != others.get(name))


def asked(cell: Path) -> list[str]:
    """Return the keys of all attempts of a cell, with repetitions."""
    path = cell / "attempts.jsonl"
    content = path.read_bytes() if path.exists() else b""
    # The last line may be torn: another process was killed while it wrote.
    return [orjson.loads(line)["key"] for line in content.split(b"\n")[:-1]]


def logged(folder: Path) -> dict[Path, set[str]]:
    """Return the keys in every cell's log. Reads a copy, since opening a log repairs it."""
    keys = {}
    for log in folder.rglob("calls.sqlite"):
        with tempfile.TemporaryDirectory(prefix="log-") as name:
            for path in log.parent.glob("calls.sqlite*"):
                shutil.copy(path, name)
            with CallLog(Path(name, log.name)) as copied:
                keys[log.parent] = {key for key in set(asked(log.parent)) if key in copied}
    return keys


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = checkout(tmp_path_factory.mktemp("calm") / "run")
    with simulated() as url:
        assert start(folder, url).wait() == 0
    return folder


@pytest.fixture
def disturbed(tmp_path: Path) -> Iterator[Path]:
    yield checkout(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")


def test_kills_lose_nothing_ask_nothing_twice_and_end_in_the_same_bytes(calm: Path, disturbed: Path) -> None:
    moments, kills, again = random.Random(0), 0, 0
    with simulated(0.3) as url:
        while kills < KILLS:
            kept = logged(disturbed)
            before = {cell: len(asked(cell)) for cell in kept}
            if killed(disturbed, url, moments.uniform(SOONEST_S, LATEST_S)):
                kills += 1
            else:
                forget_a_cell(disturbed)
            again += sum(key in keys for cell, keys in kept.items() for key in asked(cell)[before[cell] :])
        assert start(disturbed, url).wait() == 0
    assert again == 0
    assert differences(calm, disturbed) == []


def killed(folder: Path, url: str, after_s: float) -> bool:
    """Start a run and kill Snakemake and all its jobs after so many seconds; False where it ended before."""
    process = start(folder, url, "--rerun-incomplete", "--nolock")
    try:
        process.wait(after_s)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # Jobs in sessions of their own notice that Snakemake is gone.
        time.sleep(1)
        return True


def forget_a_cell(folder: Path) -> None:
    """Take a finished cell back, calls and all, so that there is something left to do."""
    for path in sorted((folder / "results" / "smoke" / "cells").rglob("run.json"))[0].parent.iterdir():
        if path.is_file():
            path.unlink()


def test_a_server_that_fails_often_changes_nothing(calm: Path, disturbed: Path) -> None:
    with simulated(faulty=0.3) as url:
        # Cells that wait for faults to pass need no core of their own.
        assert start(disturbed, url, "--cores", "8").wait() == 0
    assert differences(calm, disturbed) == []

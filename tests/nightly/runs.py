"""The smoke preset in a folder of its own, and what tells two runs of it apart."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson

from harness.files import ROOT
from harness.llm.call_log import CallLog
from tests.planning import checkout
from tests.small_run import results

__all__ = ["ROOT", "checkout"]

TARGETS = ("reports/smoke/main_table.tex", "reports/smoke/costs.md", "reports/smoke/errors.md")
# What cells share and a run finds or does not.
CACHE = "results/cache"


def command(*words: str) -> list[str]:
    """Return the command that makes all targets on two cores."""
    return [sys.executable, "-m", "snakemake", *TARGETS, "--cores", "2", "--quiet", "all", *words]


def run(folder: Path, *words: str, environment: Mapping[str, str] | None = None) -> None:
    """Run to the end.

    Raises:
        RuntimeError: It failed; with what it said last.
    """
    ended = subprocess.run(
        command(*words),
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"{folder}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")


def differences(folder_a: Path, folder_b: Path, preset: str = "smoke") -> list[str]:
    """Return the names of files of results and reports that are not the same in both."""
    files, others = (results(folder, f"results/{preset}", "reports") for folder in (folder_a, folder_b))
    return sorted(name for name in files.keys() | others.keys() if files.get(name) != others.get(name))


def asked(cell: Path) -> list[str]:
    """Return the keys of the calls that a cell has attempted, as often as it has."""
    path = cell / "attempts.jsonl"
    content = path.read_bytes() if path.exists() else b""
    # The last line may be torn: another process was killed while it wrote.
    return [orjson.loads(line)["key"] for line in content.split(b"\n")[:-1]]


def logged(folder: Path) -> dict[Path, set[str]]:
    """Return the keys in the log of every cell, read from a copy: who opens a log mends it."""
    keys = {}
    for log in folder.rglob("calls.sqlite"):
        with tempfile.TemporaryDirectory(prefix="log-") as name:
            for path in log.parent.glob("calls.sqlite*"):
                shutil.copy(path, name)
            with CallLog(Path(name, log.name)) as copied:
                keys[log.parent] = {key for key in set(asked(log.parent)) if key in copied}
    return keys


def count_repeats(folder: Path) -> Callable[[], int]:
    """Return a function that counts the calls asked from now on whose replies the logs of the cells hold now."""
    kept = logged(folder)
    before = {cell: len(asked(cell)) for cell in kept}
    return lambda: sum(key in keys for cell, keys in kept.items() for key in asked(cell)[before[cell] :])


@contextmanager
def simulated(folder: Path, latency_s: float, faulty: float = 0.0) -> Iterator[str]:
    """Serve the questions of a folder with a mean latency and a share of faults while the block runs; yield the URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults", "smoke", str(port), str(latency_s), str(faulty)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/v1/models")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return

"""A cell that learns, as a process: killed in its training and resumed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson

from harness.benchmarks.prepare import prepare
from harness.files import ROOT
from harness.runner import layout
from harness.runner.config import Cell
from tests.harness.llm.logged import calls_of, content

CELL = Cell("gmr", "gsm_hard", "pool", 0)
FOLDER = layout.cell("smoke", CELL)
COMMAND = [
    *(sys.executable, "-m", "workflow", "cell", "--preset", "smoke", "--method", "gmr", "--benchmark", "gsm_hard"),
    *("--backbone", "pool", "--set", "benchmarks=[gsm_hard]", "--set", "limit={train: 1, test: 1, epochs: 2}"),
]
NO_RESULT = {"timing.json", "attempts.jsonl", "calls.lock"}


def prepared(folder: Path) -> Path:
    """A folder with the questions and the world of one mini-benchmark."""
    paths = [folder / path for path in (layout.items("smoke", "gsm_hard"), layout.manifest("smoke", "gsm_hard"))]
    prepare("gsm_hard", "embedded", "official", *paths)
    world = [*COMMAND[:3], "world", "--preset", "smoke", "--set", "benchmarks=[gsm_hard]"]
    subprocess.run(world, cwd=folder, check=True, capture_output=True, timeout=120)
    return folder


def start(folder: Path, threads: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        COMMAND,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def everything(folder: Path) -> dict[str, bytes]:
    files = [path for path in (folder / FOLDER).rglob("*") if path.is_file() and path.name not in NO_RESULT]
    return {str(path.relative_to(folder)): content(path) for path in files}


def test_a_training_killed_half_way_ends_in_the_same_bytes(tmp_path: Path) -> None:
    place = prepared(tmp_path / "killed")
    shutil.copytree(place, tmp_path / "undisturbed")
    process = start(place, 2)
    first = place / FOLDER / "checkpoints" / "epoch-01.safetensors"
    deadline = time.monotonic() + 120
    while not first.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (place / FOLDER / "run.json").exists()
    kept = len(calls_of(place / FOLDER / "calls.sqlite"))
    # What it embedded is cached by now, so this process may never load the sentence encoder.
    assert start(place, 2).wait(timeout=120) == 0
    assert start(tmp_path / "undisturbed", 1).wait(timeout=120) == 0
    assert everything(place) == everything(tmp_path / "undisturbed")
    calls = orjson.loads((place / FOLDER / "timing.json").read_bytes())["calls"]
    alone = orjson.loads((tmp_path / "undisturbed" / FOLDER / "timing.json").read_bytes())["calls"]
    assert calls["asked"] + kept == alone["asked"]

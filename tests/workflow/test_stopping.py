"""Told to stop, a cell ends within seconds with one line, keeps what is finished, and goes on to the same bytes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from harness.files import ROOT
from harness.llm.call_log import CallLog, CallLogReader
from harness.runner import layout
from harness.runner.config import Cell
from tests.harness.llm.logged import content

ONE_BENCHMARK = ["--set", "benchmarks=[gsm_hard]", "--set", "limit={train: 1, test: 6, epochs: 2}"]
CELLS = {
    "answering": Cell("cot", "gsm_hard", "qwen-2.5-14B", 0),
    "training": Cell("gmr", "gsm_hard", "pool", 0),
}
# Of the log the rows are a result, not the pages of the file.
PASSING = {"timing.json", "attempts.jsonl", "calls.lock", "calls.sqlite"}


def words(cell: Cell) -> list[str]:
    named = ["--method", cell.method, "--benchmark", cell.benchmark, "--backbone", cell.backbone]
    return ["cell", "--preset", "smoke", *named, *ONE_BENCHMARK]


def gmr(folder: Path, *command: str) -> None:
    module = "workflow.scripts" if command[0] in ("data", "world") else "workflow"
    subprocess.run([sys.executable, "-m", module, *command], cwd=folder, check=True, capture_output=True, timeout=240)


def everything(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in PASSING]
    return {str(path.relative_to(folder)): content(path) for path in files}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions and world of one mini-benchmark."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "results").mkdir()
    gmr(folder, "data", "--preset", "smoke", "--benchmark", "gsm_hard", *ONE_BENCHMARK)
    gmr(folder, "world", "--preset", "smoke", *ONE_BENCHMARK)
    return folder


@pytest.fixture(scope="module")
def undisturbed(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Cell], Path]:
    """A folder in which nothing has disturbed a cell."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    shutil.copytree(prepared, folder)

    def of(cell: Cell) -> Path:
        if not (folder / layout.cell("smoke", cell) / "run.json").exists():
            gmr(folder, *words(cell))
        return folder

    return of


@pytest.fixture
def place(prepared: Path, tmp_path: Path) -> Path:
    shutil.copytree(prepared, tmp_path / "run")
    return tmp_path / "run"


def wait_until(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def logged(folder: Path) -> int:
    """Calls in a log that a process is writing."""
    log = folder / "calls.sqlite"
    if not log.exists() or not log.stat().st_size:
        return 0
    with CallLogReader(log) as reader:
        return len(reader)


def asked(folder: Path) -> int:
    calls: dict[str, int] = orjson.loads((folder / "timing.json").read_bytes())["calls"]
    return calls["asked"]


def stopped_lines(said: str) -> list[str]:
    assert "Traceback" not in said
    # Snakemake's own word before it may lack its end of line.
    return [line[line.index("stopped by") :] for line in said.splitlines() if "stopped by" in line]


@pytest.mark.parametrize(
    ("what", "answered", "number", "status"),
    [
        ("answering", 5, signal.SIGINT, 130),
        ("training", 12, signal.SIGTERM, 143),
    ],
)
def test_a_cell_whose_server_hangs_stops_with_one_line_and_goes_on_to_the_same_bytes(
    place: Path,
    undisturbed: Callable[[Cell], Path],
    what: str,
    answered: int,
    number: signal.Signals,
    status: int,
) -> None:
    cell = CELLS[what]
    alone, folder = (run / layout.cell("smoke", cell) for run in (undisturbed(cell), place))
    if what == "training":
        shutil.copytree(undisturbed(cell) / "results" / "cache", place / "results" / "cache")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.workflow.hanging", str(answered), *words(cell)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(process, lambda: (place / "hangs").exists() and logged(folder) == answered)
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    kept = f"{answered} finished calls of {cell} are kept, and the same command goes on with them"
    assert stopped_lines(said) == [f"stopped by {number.name}; {kept}"]
    with CallLog(folder / "calls.sqlite") as log:
        assert len(log) == answered
    assert not (folder / "run.json").exists()
    gmr(place, *words(cell))
    assert everything(folder) == everything(alone)
    assert asked(folder) == asked(alone) - answered


SMALL = "import asyncio, logging, time\nfrom workflow import signals\nlogging.basicConfig(format='%(message)s')\n"


def told(program: str, *numbers: signal.Signals) -> tuple[int, list[str]]:
    """How a program ends, and what it says, that gets signals: one after each line it prints."""
    process = subprocess.Popen(
        [sys.executable, "-c", SMALL + program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for number in numbers:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
    _, said = process.communicate(timeout=60)
    return process.returncode, said.splitlines()


def test_work_that_cannot_be_put_away_in_time_is_ended() -> None:
    program = """
async def stubborn():
    print("ready", flush=True)
    time.sleep(60)
signals.GRACE_S = 0.2
signals.run(stubborn())
"""
    line = "stopped by SIGTERM; not put away within 0.2 s, so ended at once; give the same command again"
    assert told(program, signal.SIGTERM) == (143, [line])


def test_who_is_told_twice_ends_at_once() -> None:
    program = """
async def slow():
    try:
        print("ready", flush=True)
        await asyncio.sleep(60)
    finally:
        print("ready", flush=True)
        await asyncio.sleep(60)
signals.run(slow())
"""
    status, said = told(program, signal.SIGINT, signal.SIGINT)
    assert (status, said) == (
        130,
        ["stopped by SIGINT; told so twice, so ended at once; give the same command again"],
    )


MOMENTS = {
    "while it waits": "tell(); await asyncio.sleep(60)",
    "in its last lines": "tell()",
    "while tasks left over end": "loop.left = asyncio.create_task(left_over()); await asyncio.sleep(0)",
    "when it has failed and the loop is closed": "loop.close = closing(loop.close); raise KeyError('mine')",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_told_at_any_moment_of_one_piece_of_work_nothing_comes_after_it(moment: str) -> None:
    program = f"""
import signal, threading
def tell():
    signal.raise_signal({int(signal.SIGTERM)})
def closing(close):
    def closed():
        close()
        tell()
    return closed
async def left_over():
    try:
        await asyncio.sleep(60)
    finally:
        tell()
async def work():
    loop = asyncio.get_running_loop()
    {MOMENTS[moment]}
signals.GRACE_S = 0.5
try:
    for piece in range(3):
        try:
            signals.run(work())
        except KeyError:
            pass
        logging.error("went on")
finally:
    # What could still end this process would do it here.
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
"""
    assert told(program) == (143, ["stopped by SIGTERM; give the same command again"])


def test_work_outside_the_event_loop_stops_with_one_line_too() -> None:
    program = "signals.stop_cleanly()\nprint('ready', flush=True)\ntime.sleep(60)\n"
    assert told(program, signal.SIGTERM) == (143, ["stopped by SIGTERM; give the same command again"])


def test_under_snakemake_too(prepared: Path, tmp_path: Path) -> None:
    for name in ("Snakefile", "workflow", "config", "profiles", "environment.yml"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(prepared / "results", tmp_path / "results")
    cell = CELLS["answering"]
    folder = tmp_path / layout.cell("smoke", cell)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "gmr"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.workflow.hanging 5 "$@"\n')
    command.chmod(0o755)
    configured = ["--config", "preset=smoke", "benchmarks=[gsm_hard]", "limit={train: 1, test: 6, epochs: 2}"]
    snakemake = "import sys; sys.executable = sys.argv.pop(1); from snakemake.cli import main; main()"
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", snakemake, str(tmp_path / "bin" / "python"), "--cores", "1"),
            *(str(folder.relative_to(tmp_path) / "run.json"), *configured),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(process, lambda: (tmp_path / "hangs").exists() and logged(folder) == 5)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert stopped_lines(said) == [
        f"stopped by SIGINT; 5 finished calls of {cell} are kept, and the same command goes on with them"
    ]
    with CallLog(folder / "calls.sqlite") as log:
        assert len(log) == 5

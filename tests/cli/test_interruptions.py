"""A cell's process when killed, stopped, locked, or out of disk or budget; and resumption to identical bytes."""

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from cli import signals
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.call_log import CallLog
from harness.llm.client import BudgetError
from harness.llm.request import Message, Metadata, Reply, Request
from harness.runner import layout
from harness.runner.layout import Cell
from tests import small_run
from tests.command import gmr
from tests.harness.llm.logged import calls_of
from tests.planning import checkout, snakemake_of, stand_in

COT, CHAIN = (Cell(method, "gsm_hard", "qwen-2.5-14B", 0) for method in ("cot", "macnet_chain"))
KEPT = f"stopped by {{}}; 5 finished calls of {COT} are kept, and the same command resumes with them"
Undisturbed = Callable[[Cell], dict[str, bytes]]
SETTINGS = ("benchmarks=[gsm_hard]", "limit={train: 1, test: 40, epochs: 2}")
# ``gmr`` with backbones that answer five calls; later calls hang for ever, of which the first writes a file.
HANGING = """
import asyncio, itertools, pathlib
from cli.main import main
from harness.llm.client import ChatClient
answering, asked = ChatClient._ask, itertools.count()
async def ask(*request):
    if next(asked) >= 5:
        pathlib.Path("hangs").touch()
        await asyncio.Event().wait()
    return await answering(*request)
ChatClient._ask = ask
main()
"""


def words(cell: Cell, *more: str) -> list[str]:
    named = ["--method", cell.method, "--benchmark", cell.benchmark, "--backbone", cell.backbone]
    return ["cell", *named, *settings(*SETTINGS), *more]


def settings(*given: str) -> list[str]:
    return ["--preset", "smoke", *(word for one in given for word in ("--set", one))]


def run(folder: Path, *given: str) -> None:
    """Run a command in this process."""
    with contextlib.chdir(folder):
        ended = gmr(*given)
    assert ended.exit_code == 0, ended.output


def heed_hangup() -> None:
    # Who runs the tests may ignore it, as nohup does.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start(folder: Path, *command: str, before: Callable[[], None] = heed_hangup) -> subprocess.Popen[str]:
    """Start a command in a session of its own, which calls a function before."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=before,
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare the questions of one mini-benchmark."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "results").mkdir()
    run(folder, "data", "--benchmark", "gsm_hard", *settings(*SETTINGS))
    return folder


@pytest.fixture
def place(prepared: Path, tmp_path: Path) -> Path:
    shutil.copytree(prepared, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def undisturbed(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    shutil.copytree(prepared, folder)

    def of(cell: Cell) -> dict[str, bytes]:
        if not (folder / layout.cell("smoke", cell) / "run.json").exists():
            run(folder, *words(cell))
        return results(folder, cell)

    return of


def results(folder: Path, cell: Cell = COT) -> dict[str, bytes]:
    return small_run.results(folder, str(layout.cell("smoke", cell)))


def logged(folder: Path, cell: Cell = COT) -> int:
    """Count the calls in a log that a process may just be writing."""
    log = folder / layout.cell("smoke", cell) / layout.CALL_LOG
    try:
        return len(calls_of(log)) if log.exists() else 0
    except sqlite3.OperationalError:
        return 0


def timing(folder: Path, cell: Cell = COT) -> Any:
    return orjson.loads((folder / layout.cell("smoke", cell) / layout.TIMING).read_bytes())


def wait_until(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.002)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_cell_killed_or_stopped_while_its_server_hangs_asks_nothing_twice_and_ends_in_the_same_bytes(
    place: Path, undisturbed: Undisturbed, number: signal.Signals
) -> None:
    process = start(place, sys.executable, "-c", HANGING, *words(COT))
    wait_until(process, lambda: (place / "hangs").exists() and logged(place) == 5)
    os.killpg(process.pid, number)
    output = process.communicate(timeout=60)[1]
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        assert output.splitlines()[-1] == KEPT.format(number.name)
    assert not (place / layout.cell("smoke", COT) / "run.json").exists()
    run(place, *words(COT))
    assert results(place) == undisturbed(COT)
    assert timing(place)["calls"]["asked"] == logged(place) - 5
    run(place, *words(COT))
    assert results(place) == undisturbed(COT)
    assert timing(place)["calls"]["asked"] == 0


def test_a_cell_dies_with_the_snakemake_that_started_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as snakemake:
        monkeypatch.setenv(signals.PARENT, f"{socket.gethostname()}:{snakemake.pid}")
        cell = start(place, sys.executable, "-m", "cli.main", *words(COT, "--set", "in_flight=1"))
        wait_until(cell, lambda: logged(place) > 0)
        cell.send_signal(signal.SIGSTOP)
        snakemake.kill()
    cell.send_signal(signal.SIGCONT)
    assert cell.wait(timeout=20) == 1


def test_a_full_disk_is_one_line_and_nothing_is_lost(place: Path, undisturbed: Undisturbed) -> None:
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (32_000, resource.RLIM_INFINITY))

    full = start(place, sys.executable, "-m", "cli.main", *words(COT, "--set", "in_flight=1"), before=small_disk)
    output = full.communicate()[1]
    assert full.returncode == 2
    assert "error: cannot write" in output
    assert "Traceback" not in output
    kept = logged(place)
    assert kept > 1
    run(place, *words(COT))
    assert results(place) == undisturbed(COT)
    assert timing(place)["calls"]["log"] == kept


def test_cells_of_a_run_share_its_budget_and_go_on_to_the_same_bytes(place: Path, undisturbed: Undisturbed) -> None:
    def within(calls: int) -> list[str]:
        return ["--set", f"budget={{calls: {calls}}}"]

    run(place, *words(COT, *within(50)))
    seconds = timing(place)["test_s"]
    for most in (50, 60):
        with pytest.raises(BudgetError, match=f"preset smoke is spent: {most} of {most} calls"):
            run(place, *words(CHAIN, *within(most)))
    # What the log holds needs no budget.
    run(place, *words(COT, *within(60)))
    assert timing(place)["calls"]["asked"] == 0
    assert timing(place)["test_s"] == seconds > 0, "asked in one start, whichever start wrote the results"
    run(place, *words(CHAIN))
    assert timing(place, CHAIN)["calls"]["asked"] == logged(place, CHAIN) - (60 - logged(place))
    assert timing(place, CHAIN)["test_s"] is None, "asked in two starts"
    for cell in (COT, CHAIN):
        assert results(place, cell) == undisturbed(cell)


def test_a_second_writer_is_refused_and_failed_calls_are_an_answer_until_told_to_forget_them(
    place: Path, undisturbed: Undisturbed
) -> None:
    run(place, *words(COT))
    folder, log = place / layout.cell("smoke", COT), place / layout.cell("smoke", COT) / layout.CALL_LOG
    asked = min(calls_of(log).items())[1]["request"]
    messages = tuple(Message(**one) for one in asked["messages"])
    request = Request(**{**asked, "messages": messages, "metadata": Metadata(**asked["metadata"])})
    retry = ["retry", "--preset", "smoke"]
    run(place, *retry)
    with CallLog(log) as opened:
        asyncio.run(opened.append(request, Reply.failed(request.model, "the server was on fire")))
        with pytest.raises(UserError, match="is being written by process"):
            run(place, *retry)
    assert (folder / "run.json").exists(), "while another process is at work, nothing may go"
    run(place, *words(COT))
    assert b"the server was on fire" in (folder / "items.parquet").read_bytes()
    run(place, *retry)
    assert not (folder / "run.json").exists()
    run(place, *words(COT))
    assert results(place) == undisturbed(COT)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=pytest.mark.nightly)])
def test_snakemake_told_to_stop_once_or_twice_says_what_is_kept_and_nothing_that_looks_like_failure(
    number: signal.Signals, prepared: Path, tmp_path: Path
) -> None:
    shutil.copytree(prepared / "results", checkout(tmp_path) / "results")
    stand_in(tmp_path, f"#!{sys.executable}\n{HANGING}")
    target = str(layout.cell("smoke", COT) / "run.json")
    process = start(tmp_path, *snakemake_of(tmp_path), "--cores", "1", target, "--config", "preset=smoke", *SETTINGS)
    wait_until(process, lambda: (tmp_path / "hangs").exists() and logged(tmp_path) == 5)
    os.killpg(process.pid, number)
    time.sleep(0.3)
    process.send_signal(number)
    lines = process.communicate(timeout=60)[1].splitlines()
    assert process.returncode > 0
    assert list(tmp_path.glob(".snakemake/locks/*")) == []
    begun = next(place for place, line in enumerate(lines) if line.startswith("jobs to do: "))
    # Where the job ends before Snakemake says that it stops, there is no such line.
    others = {
        "stopping; jobs save what they have",
        "tables of preset smoke do not show its benchmarks humaneval, but gsm_hard",
    }
    assert sorted({*lines[begun + 1 :]} - others) == [
        KEPT.format(number.name),
        "stopped; what is finished is kept, and the same command resumes",
    ]


SMALL = "import asyncio, logging, time\nfrom cli import signals\nlogging.basicConfig(format='%(message)s')\n"
SLOW = """
from pathlib import Path
from harness.files import whole_file
async def work():
    with whole_file(Path("cell/items.parquet")) as file:
        try:
            print("ready", flush=True)
            await asyncio.sleep(60)
        finally:
            file.write(b"half")
            print("ready", flush=True)
            await asyncio.sleep(60)
signals.run(work())
"""
OUTSIDE = "signals.stop_cleanly()\nprint('ready', flush=True)\ntime.sleep(60)\n"
# Told when its work is done: the caller must not continue with the next piece.
DONE = """
import signal
async def work():
    signal.raise_signal(signal.SIGTERM)
signals.run(work())
logging.error("went on")
"""


@pytest.mark.parametrize(
    ("program", "numbers", "line"),
    [
        (SLOW, [signal.SIGINT] * 2, "stopped by SIGINT; second signal, exited at once; "),
        (OUTSIDE, [signal.SIGHUP], "stopped by SIGHUP; "),
        (DONE, [], "stopped by SIGTERM; "),
    ],
)
def test_told_at_any_moment_a_process_ends_with_one_line(
    program: str, numbers: list[signal.Signals], line: str, tmp_path: Path
) -> None:
    process = start(tmp_path, sys.executable, "-c", SMALL + program)
    for number in numbers:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
    _, output = process.communicate(timeout=60)
    assert output == f"{line}run the same command again\n"
    assert process.returncode == 128 + (numbers or [signal.SIGTERM])[0]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

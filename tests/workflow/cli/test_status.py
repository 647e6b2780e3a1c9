"""What ``gmr status`` says of cells in every state, held against the logs and tables themselves."""

import asyncio
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness import config, layout
from harness.backbones import load
from harness.budget import Prices, Spent, spent_in
from harness.config import Cell
from harness.files import ROOT
from harness.ledger import ledger
from harness.llm.call_log import CallLog
from harness.llm.request import Message, Reply, Request
from tests.workflow.cli.conftest import COT, GMR
from workflow.cli import app
from workflow.watching.amounts import RunningCalls, finished
from workflow.watching.cells import SILENCE_S, Seen, State, log_of, look
from workflow.watching.left import seconds_left
from workflow.watching.line import duration, one_line
from workflow.watching.standing import Standing, Watch

PRICES = Prices(load(ROOT / "config" / "backbones.yaml").values())
MODEL = "Qwen/Qwen2.5-14B-Instruct"
ROWS = ("--set", "benchmarks=[gsm_hard]", "--set", "methods=[gmr, cot]", "--set", "backbones=[qwen-2.5-14B]")
PRESET = config.preset("embedded")


def gmr(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["status", *ROWS, *words], catch_exceptions=False)
    return found.exit_code, found.stdout


def state(cell: Cell) -> State:
    (found,) = look(PRESET, [cell])
    return found.state


def unfinish(cell: Cell) -> Path:
    folder = layout.cell("embedded", cell)
    (folder / "run.json").unlink()
    return folder / layout.CALL_LOG


def append(log: CallLog, *numbers: int, error: str | None = None) -> None:
    for number in numbers:
        request = Request(MODEL, None, (Message("user", f"How many are {number}?"),))
        reply = Reply.failed(MODEL, error) if error else Reply("some", 1000 + number, 10 * number, "stop", MODEL)
        asyncio.run(log.append(request, reply))


def test_a_cell_is_finished_running_failed_stopped_or_missing(run: Path) -> None:
    assert state(GMR) is State.FINISHED
    with CallLog(unfinish(GMR)):
        assert state(GMR) is State.RUNNING
    assert state(GMR) is State.STOPPED
    said = log_of("embedded", GMR)
    said.parent.mkdir(parents=True)
    said.write_text("gmr gsm_hard pool seed 0: training, epoch 1\nerror: the disk is full; free space\n\n")
    assert state(GMR) is State.FAILED
    with CallLog(layout.call_log("embedded", GMR)):
        assert state(GMR) is State.RUNNING
    assert state(Cell("gmr", "math", "pool", 0)) is State.MISSING


def test_a_process_number_that_another_process_has_now_is_not_the_cell(run: Path) -> None:
    lock = unfinish(GMR).with_suffix(".lock")
    lock.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    assert state(GMR) is State.STOPPED


def test_a_cell_of_another_machine_runs_while_it_writes(run: Path) -> None:
    lock = unfinish(GMR).with_suffix(".lock")
    lock.write_text("process 1 on elsewhere\n")
    assert state(GMR) is State.RUNNING
    long_ago = time.time() - SILENCE_S - 60
    for file in lock.parent.iterdir():
        os.utime(file, (long_ago, long_ago))
    assert state(GMR) is State.STOPPED


def test_what_a_running_cell_asked_is_what_its_log_says_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / layout.CALL_LOG
    watched = RunningCalls(path, PRICES)
    assert watched.spent() == Spent()
    with CallLog(path) as log:
        for numbers in ((1, 2, 3), (), (4,), (5, 6)):
            append(log, *numbers)
            assert watched.spent() == pytest.approx(spent_in(path, [], PRICES))
        append(log, 7, error="no room left")
        assert watched.spent().calls == 6
    path.unlink()
    assert watched.spent().calls == 6


def test_a_line_that_is_being_written_counts_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / layout.CALL_LOG
    with CallLog(path) as log:
        append(log, 1, 2)
    whole = path.read_bytes()
    watched = RunningCalls(path, PRICES)
    for end, calls in ((len(whole) - 40, 1), (len(whole) - 1, 1), (len(whole), 2)):
        path.write_bytes(whole[:end])
        assert watched.spent().calls == calls


def test_nothing_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / layout.CALL_LOG, []
    watched = RunningCalls(path, PRICES)
    of = watched._of
    monkeypatch.setattr(watched, "_of", lambda line: seen.append(line) or of(line))
    with CallLog(path) as log:
        append(log, 1, 2)
        watched.spent()
        append(log, 3)
        watched.spent()
    assert len(seen) == len(set(seen)) == 3


def test_what_a_finished_cell_asked_is_what_the_ledger_says(run: Path) -> None:
    for cell in (GMR, COT):
        folder = layout.cell("embedded", cell)
        row = ledger([folder]).loc["all"]
        expected = Spent(int(row["calls"]), int(row["prompt_tokens"] + row["completion_tokens"]), row["cost"])
        assert finished(folder) == pytest.approx(expected)


def seen(method: str, number: int, state: State) -> Seen:
    cell = Cell(method, "gsm_hard", "pool", number)
    return Seen(cell, layout.cell("embedded", cell), state, Path("log"), ())


def test_the_time_left_is_that_of_the_method_side_by_side() -> None:
    done = [seen("cot", 0, State.FINISHED), seen("cot", 1, State.FINISHED), seen("gmr", 0, State.FINISHED)]
    took = {one.folder: seconds for one, seconds in zip(done, (10.0, 20.0, 90.0), strict=True)}
    waiting = [seen("cot", 2, State.MISSING), seen("gmr", 1, State.MISSING), seen("aflow", 0, State.FAILED)]
    # 15 for the one, 90 for the next, 40 for the method of which nothing is known.
    assert seconds_left([*done, *waiting], took, 1) == pytest.approx(145)
    assert seconds_left([*done, *waiting], took, 10) == pytest.approx(90)
    assert seconds_left([*done, *waiting], took, 0) is None
    assert seconds_left(waiting, {}, 2) is None
    assert seconds_left(done, took, 0) == 0


def test_a_watch_counts_calls_a_second(run: Path) -> None:
    path = unfinish(GMR)
    for file in path.parent.glob("calls*"):
        file.unlink()
    watch = Watch(PRESET, [GMR])
    with CallLog(path) as log:
        append(log, 1, 2)
        first = watch.look(100.0)
        append(log, *range(3, 23))
        second = watch.look(104.0)
    assert (first.spent.calls, first.rate) == (2, None)
    assert (second.spent.calls, second.rate) == (22, 5.0)
    tokens, cost = second.spent.tokens, second.spent.cost
    line = f"cells 0/1, 1 running · jobs 3/7 · 22 calls (5/s) · {tokens:,} tokens · cost {cost:.4f}"
    assert one_line(second, "3/7") == line
    assert one_line(Standing([seen("cot", 0, State.FAILED)], Spent(), None, 100.0), "") == (
        "cells 0/1, 1 failed · 0 calls · 0 tokens · cost 0.0000 · about 2 min left"
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5300, "88 min"), (5400, "1 h 30 min")]
)
def test_a_time_as_one_says_it(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_status_of_an_unfinished_run_names_what_failed_and_what_to_do(run: Path) -> None:
    unfinish(COT)
    said = log_of("embedded", COT)
    said.parent.mkdir(parents=True)
    said.write_text("one\nerror: the server is gone; start it\n")
    status, text = gmr()
    assert status == 1
    assert text.startswith("SIMULATED BACKBONES")
    assert "Preset embedded, main_table: 1 of 2 cells finished, 1 failed." in text
    assert "gmr  1/1\ncot  0/1 1f\n" in text
    assert f"Failed\n  cot gsm_hard qwen-2.5-14B seed 0 ({said})\n    one\n    error: the server is gone" in text
    assert "Artefacts not made: main_table, " in text
    assert text.endswith("Next: gmr run main_table --preset embedded\n")


def test_finished_is_said_when_the_artefact_is_newer_than_its_cells(run: Path) -> None:
    report = ["report", "main_table", "--preset", "embedded", *ROWS]
    assert gmr()[0] == 1
    assert CliRunner().invoke(app, report, catch_exceptions=False).exit_code == 0
    status, text = gmr()
    assert (status, text.splitlines()[-1]) == (0, "All is finished.")
    newer = time.time() + 100
    os.utime(layout.cell("embedded", GMR) / "run.json", (newer, newer))
    status, text = gmr()
    assert status == 1
    assert "Artefacts outdated: main_table" in text


def test_the_document_has_the_same_in_numbers(run: Path) -> None:
    unfinish(COT)
    status, text = gmr("--json")
    found: dict[str, Any] = json.loads(text)
    assert status == 1
    assert found["finished"] is False
    assert found["counts"] == {"finished": 1, "running": 0, "failed": 0, "stopped": 1, "missing": 0}
    assert [(one["method"], one["state"]) for one in found["cells"]] == [("gmr", "finished"), ("cot", "stopped")]
    assert found["calls"] == finished(layout.cell("embedded", GMR)).calls
    assert found["artefacts"]["main_table"] == "not made"


def test_cells_of_other_targets_are_counted_apart(run: Path) -> None:
    _, text = gmr("results/embedded/cells/gmr/gsm_hard/pool/seed0/run.json")
    assert "1 of 1 cells finished." in text
    assert "Beyond these: 1 of 1 cells finished; 3 calls" in text


def test_a_look_leaves_everything_as_it_was(run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    gmr()
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before

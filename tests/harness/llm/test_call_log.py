"""Finished calls on the disk: found again, written by one, kept through kills and full disks."""

import asyncio
import multiprocessing
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import orjson
import pytest

from harness.errors import UserError
from harness.files import ROOT
from harness.llm.call_log import AttemptLog, CallLog, CallLogReader, Texts, copy
from harness.llm.request import Message, Reply
from tests.harness.llm.logged import answers, calls_of, fill, reply, request

FAILED = Reply.failed("some/model", "context too long")


async def test_a_finished_call_is_found_after_reopening(tmp_path: Path) -> None:
    """Beside the log there is its lock and nothing else."""
    path = tmp_path / "calls.sqlite"
    with CallLog(path) as log:
        await log.append(request("a"), reply("b\0数😀"))
    for opened in (CallLog(path), CallLogReader(path)):
        with opened as log:
            assert log.get(request("a").key) == reply("b\0数😀")
            assert log.get(request("b").key) is None
            assert log.texts(request("a").key) == Texts((Message("user", "a"),), "b\0数😀")
            assert log.texts(request("b").key) is None
            assert len(log) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls.lock", "calls.sqlite"]


async def test_a_row_says_what_was_asked_and_answered(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    with CallLog(path) as log:
        await log.append(request("a", draw=2), Reply("b", 3, 5, "stop", "other/model"), asked=False)
    key = request("a", draw=2).key
    assert calls_of(path) == {
        key: {
            "number": 1,
            "key": key,
            "model": "some/model",
            "asked": 0,
            "prompt_tokens": 3,
            "completion_tokens": 5,
            "finish_reason": "stop",
            "replied": "other/model",
            "error": None,
            "request": orjson.loads(request("a", draw=2).record),
            "reply": "b",
        }
    }


async def test_what_servers_were_paid_leaves_out_failed_and_shared_calls(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.sqlite") as log:
        await asyncio.gather(*(log.append(request(text), reply(text)) for text in "abc"))
        await log.append(request("d"), reply("d"), asked=False)
        await log.append(request("e"), FAILED)
        assert log.paid() == [("some/model", 3, 9, 15)]


async def test_failed_calls_are_forgotten_and_answers_stay(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    with CallLog(path) as log:
        await log.append(request("a"), reply("1"))
        await log.append(request("b"), FAILED)
        assert log.failed() == 1
        assert log.forget_failed() == 1
        assert request("b").key not in log
        assert log.failed() == 0
    assert answers(path, "ab") == {"a": "1"}


def test_a_copy_in_the_order_of_keys_is_the_same_bytes_in_any_order_of_finishing(tmp_path: Path) -> None:
    for name, texts in (("one", "abc"), ("other", "cab")):
        fill(tmp_path / name / "calls.sqlite", texts)
        copy(tmp_path / name / "calls.sqlite", tmp_path / f"{name}.sqlite", prompts=False)
    assert (tmp_path / "one.sqlite").read_bytes() == (tmp_path / "other.sqlite").read_bytes()
    assert answers(tmp_path / "one.sqlite", "abc") == {"a": "A", "b": "B", "c": "C"}
    assert [row["request"]["messages"] for row in calls_of(tmp_path / "one.sqlite").values()] == [[], [], []]


def _hold(path: Path, ready: "multiprocessing.synchronize.Event", done: "multiprocessing.synchronize.Event") -> None:
    with CallLog(path):
        ready.set()
        done.wait(20)


def test_a_second_writer_stops_and_names_the_first_while_readers_read(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    fill(path, "a")
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(path, ready, done))
    holder.start()
    try:
        assert ready.wait(20)
        with pytest.raises(UserError, match=f"being written by process {holder.pid}"):
            CallLog(path)
        with CallLogReader(path) as reader:
            assert reader.get(request("a").key) == reply("A")
    finally:
        done.set()
        holder.join()
    CallLog(path).close()


KILLED = """
import asyncio, sys
from pathlib import Path
from harness.llm.call_log import CallLog
from tests.harness.llm.logged import reply, request

async def main():
    with CallLog(Path(sys.argv[1])) as log:
        async def work(lane):
            number = 0
            while True:
                await log.append(request(f"{lane} {number}"), reply("x" * 5000))
                print(f"{lane} {number}", flush=True)
                number += 1
        await asyncio.gather(*(work(lane) for lane in range(20)))

asyncio.run(main())
"""


def test_a_killed_writer_loses_no_call_whose_reply_was_used(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert writer.stdout is not None
    used = [writer.stdout.readline().strip() for _ in range(333)]
    writer.send_signal(signal.SIGKILL)
    used += [line.strip() for line in writer.stdout if line.endswith("\n")]
    writer.wait()
    with CallLogReader(path) as log:
        assert all(log.get(request(text).key) for text in used)
    with CallLog(path) as log:
        assert len(log) >= len(used)


async def test_calls_that_did_not_fit_are_not_there_and_later_ones_are_written(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    with CallLog(path) as log:
        await log.append(request("a"), reply("A"))
        (pages,) = log._database.execute("PRAGMA page_count").fetchone()
        log._database.execute(f"PRAGMA max_page_count = {pages}")
        asked = [log.append(request(text), reply(text * 5000)) for text in "bcd"]
        refused = await asyncio.gather(*asked, return_exceptions=True)
        assert all("database or disk is full" in str(one) for one in refused)
        assert len(log) == 1
        log._database.execute("PRAGMA max_page_count = 1000000")
        await log.append(request("d"), reply("D"))
    assert answers(path, "abcd") == {"a": "A", "d": "D"}


def test_a_damaged_log_is_one_line_that_names_it_and_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    for content in (b"no database" * 1000, None):
        path.unlink(missing_ok=True)
        if content is None:
            with sqlite3.connect(path) as database:
                database.execute("CREATE TABLE calls (something)")
        else:
            path.write_bytes(content)
        for kind in (CallLog, CallLogReader):
            with pytest.raises(UserError, match=r"calls\.sqlite is damaged .*move it away") as caught, kind(path):
                pass
            assert "\n" not in str(caught.value)


def test_a_missing_log_and_a_folder_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"calls\.sqlite is missing; remove .*run\.json"):
        CallLogReader(tmp_path / "calls.sqlite")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write"):
        CallLog(tmp_path / "file" / "calls.sqlite")


def test_callers_that_give_up_take_nothing_back_and_closing_writes_all(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"

    async def leave(turns: int) -> None:
        with CallLog(path) as log:
            callers = [asyncio.create_task(log.append(request(f"{turns} {n}"), reply("x"))) for n in range(100)]
            for _ in range(turns):
                await asyncio.sleep(0)
            callers[0].cancel()

    for turns in (1, 2, 3):
        asyncio.run(leave(turns))
        assert len(calls_of(path)) == 100 * turns


async def test_the_loop_turns_while_the_disk_is_busy_and_what_comes_meanwhile_goes_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    portions: list[int] = []
    free, commit = threading.Event(), CallLog._commit

    def slowly(self: CallLog, rows: list[tuple[object, ...]]) -> None:
        assert free.wait(20)
        portions.append(len(rows))
        commit(self, rows)

    monkeypatch.setattr(CallLog, "_commit", slowly)
    with CallLog(tmp_path / "calls.sqlite") as log:
        waiting = [asyncio.create_task(log.append(request("first"), reply("x")))]
        await asyncio.sleep(0.01)
        waiting += [asyncio.create_task(log.append(request(str(number)), reply("x"))) for number in range(50)]
        began = time.monotonic()
        for _ in range(100):
            await asyncio.sleep(0)
            assert log.get(request("7").key) is None
        assert time.monotonic() - began < 5
        free.set()
        await asyncio.gather(*waiting)
    assert portions == [1, 50]


async def test_every_attempt_is_noted_at_once_with_its_error(tmp_path: Path) -> None:
    before = time.time()
    for _ in range(2):
        with AttemptLog(tmp_path / "attempts.jsonl") as log:
            with log.measure("key", "url"):
                await asyncio.sleep(0.02)
            with pytest.raises(ValueError, match="worse"), log.measure("key", "url"):
                raise ValueError("worse")
            first, second = [orjson.loads(line) for line in log.path.read_bytes().splitlines()][-2:]
            assert (first["key"], first["endpoint"], first["error"]) == ("key", "url", None)
            assert first["latency_s"] >= 0.02
            assert before <= first["started"] <= time.time()
            assert second["error"] == "ValueError: worse"
            assert log.failed == 1
    assert log.path.read_bytes().count(b"\n") == 4


def test_a_full_disk_stops_the_log_of_attempts_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "attempts.jsonl").symlink_to("/dev/full")
    full = pytest.raises(UserError, match=r"cannot write .*No space left")
    with AttemptLog(tmp_path / "attempts.jsonl") as log, full, log.measure("key", "url"):
        pass

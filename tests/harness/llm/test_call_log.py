"""The call log and the machine's cache: look-ups, and durability under kills and full disks."""

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import zstandard

from harness.database import Cache
from harness.errors import UserError
from harness.llm.call_log import AttemptLog, CallLog, CallLogReader, CallTexts, copy
from harness.llm.request import Message, Reply
from tests.harness.llm.logged import calls_of, execute
from tests.harness.llm.serving import request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.sqlite"


def reply(text: str) -> Reply:
    return Reply(text, 3, 5, "stop", "some/model")


def fill(path: Path, texts: Iterable[str]) -> None:
    async def appended() -> None:
        with CallLog(path) as log:
            for text in texts:
                await log.append(request(text), reply(text.upper()))

    asyncio.run(appended())


def answers(path: Path, texts: Iterable[str]) -> dict[str, str]:
    with CallLog(path) as log:
        found = {text: log.get(request(text).key) for text in texts}
    return {text: one.text for text, one in found.items() if one is not None}


async def test_a_finished_call_is_found_at_once_and_after_reopening(path: Path) -> None:
    """Beside the log there is its lock and nothing else."""
    with CallLog(path) as log:
        await log.append(request("a"), reply("b\0数😀"))
        assert log.get(request("a").key) == reply("b\0数😀"), "so that an equal call is not asked again"
    for opened in (CallLog(path), CallLogReader(path)):
        with opened as log:
            assert log.get(request("a").key) == reply("b\0数😀")
            assert log.texts(request("a").key) == CallTexts((Message("user", "a"),), "b\0数😀")
            assert log.get(request("b").key) is log.texts(request("b").key) is None
    assert sorted(file.name for file in path.parent.iterdir()) == ["calls.lock", "calls.sqlite"]


async def test_a_row_says_what_was_asked_and_answered_and_what_servers_were_paid(path: Path) -> None:
    asked = request("a", draw=2)
    with CallLog(path) as log:
        await log.append(asked, Reply("b", 3, 5, "stop", "other/model"))
        row = calls_of(path)[asked.key]
        assert (row["request"], row["reply"], row["replied"]) == (orjson.loads(asked.record), "b", "other/model")
        assert (row["asked"], row["prompt_tokens"], row["completion_tokens"], row["error"]) == (1, 3, 5, None)
        await asyncio.gather(*(log.append(request(text), reply(text)) for text in "cde"))
        await log.append(request("f"), Reply.failed("some/model", "half a pair: \ud83d"))
        await log.charge("some/model", 7, 2)
        # Budgets alone count unusable replies that were paid for.
        assert (log.paid(), len(log)) == ([("some/model", 5, 19, 22)], 5)
        assert log.failed() == log.forget_failed() == 1
        assert request("f").key not in log
    assert answers(path, "cf") == {"c": "c"}


async def test_token_details_are_kept_and_a_log_without_them_has_no_such_columns(path: Path) -> None:
    detailed = replace(reply("B"), cached_tokens=2, reasoning_tokens=0)
    with CallLog(path) as log:
        await log.append(request("a"), reply("A"))
        assert "cached_tokens" not in calls_of(path)[request("a").key]
        await log.append(request("b"), detailed)
        await log.append(request("c"), reply("C"))
        rows = [*log.rows("")]
    copy(path, path.with_name("copy.sqlite"), prompts=True)
    for each in (path, path.with_name("copy.sqlite")):
        with CallLogReader(each) as log:
            assert [log.get(request(text).key) for text in "abc"] == [reply("A"), detailed, reply("C")]
            assert sorted(log.rows("")) == sorted(rows)
    execute(path, "UPDATE calls SET cached_tokens = 3 WHERE cached_tokens = 2")
    with CallLogReader(path) as log, pytest.raises(UserError, match="is not the one that was recorded"):
        log.get(request("b").key)


def test_a_copy_in_the_order_of_keys_is_the_same_bytes_in_any_order_of_finishing(tmp_path: Path) -> None:
    for name, texts in (("one", "abc"), ("other", "cab")):
        fill(tmp_path / name / "calls.sqlite", texts)
        copy(tmp_path / name / "calls.sqlite", tmp_path / f"{name}.sqlite", prompts=False)
    assert (tmp_path / "one.sqlite").read_bytes() == (tmp_path / "other.sqlite").read_bytes()
    assert answers(tmp_path / "one.sqlite", "abc") == {"a": "A", "b": "B", "c": "C"}
    expected = {request(text).key: {**orjson.loads(request(text).record), "messages": []} for text in "abc"}
    assert {key: row["request"] for key, row in calls_of(tmp_path / "one.sqlite").items()} == expected


BOMBS = [zstandard.ZstdCompressor(write_content_size=known).compress(bytes(200 << 20)) for known in (True, False)]
DAMAGES = [
    ("DELETE FROM dictionary", "its dictionary is lost"),
    ("UPDATE calls SET prompt_tokens = 4", r"the reply to call \w+ is not .*take the row"),
    *((f"UPDATE calls SET request = x'{bomb.hex()}'", "") for bomb in BOMBS),  # noqa: S608
]


@pytest.mark.parametrize(("statement", "message"), DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_row_is_one_line_with_the_cure(statement: str, message: str, path: Path) -> None:
    fill(path, "ab")
    execute(path, statement)
    told = pytest.raises(UserError, match=rf"^[^\n]*calls\.sqlite is damaged \([^\n]*{message}[^\n]*$")
    with CallLogReader(path) as log, told:
        log.texts(request("a").key)
    if "dictionary" in statement:
        with told:
            copy(path, path.with_name("copy.sqlite"), prompts=True)


def test_a_damaged_file_and_a_key_that_is_none_are_one_line_with_the_cure(path: Path) -> None:
    fill(path, "a")
    execute(path, "UPDATE calls SET key = 'x' || substr(key, 2)")
    with pytest.raises(UserError, match=r"calls\.sqlite is damaged \(non-hex.*move it away"):
        CallLog(path)
    path.write_bytes(b"no database" * 1000)
    for kind in (CallLog, CallLogReader):
        with pytest.raises(UserError, match=r"^[^\n]*calls\.sqlite is damaged .*move it away[^\n]*$"):
            kind(path)


@pytest.mark.parametrize("kind", [CallLog, CallLogReader])
def test_an_emptied_log_beside_attempts_is_no_new_one(kind: type[CallLogReader], path: Path) -> None:
    """A log has tables before the first attempt; without attempts, an empty file is one that was just begun."""
    path.touch()
    with kind(path) as log:
        assert (log.get(request("a").key), log.paid(), log.failed()) == (None, [], 0)
    assert kind is CallLog or path.read_bytes() == b""
    path.write_bytes(b"")
    path.with_name("attempts.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match=r"^[^\n]*calls\.sqlite is damaged \(it is empty.*move it away[^\n]*$"):
        kind(path)


def test_a_missing_log_and_a_folder_that_cannot_be_written_are_told(path: Path) -> None:
    for read in (CallLogReader, lambda log: copy(log, path.with_name("copy.sqlite"), prompts=True)):
        with pytest.raises(UserError, match=r"calls\.sqlite is missing; remove .*run\.json"):
            read(path)
    path.with_name("file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write"):
        CallLog(path.with_name("file") / "calls.sqlite")


def test_callers_that_give_up_take_nothing_back_and_closing_writes_all(path: Path) -> None:
    async def leave(turns: int) -> None:
        with CallLog(path) as log:
            callers = [asyncio.create_task(log.append(request(f"{turns} {n}"), reply("x"))) for n in range(100)]
            for _ in range(turns):
                await asyncio.sleep(0)
            callers[0].cancel()

    for turns in (1, 2, 3):
        asyncio.run(leave(turns))
        assert len(calls_of(path)) == 100 * turns


async def test_every_attempt_is_noted_at_once_with_its_error_behind_no_torn_line(tmp_path: Path) -> None:
    path, before = tmp_path / "attempts.jsonl", time.time()
    path.write_bytes(b'{"key":"first"}\n{"key":"to')
    with AttemptLog(path) as log:
        with log.measure("key", "url"):
            await asyncio.sleep(0.02)
        with pytest.raises(ValueError, match="worse"), log.measure("key", "url"):
            raise ValueError("worse")
        assert log.failed == 1
        first, second, third = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert (first, second["key"], second["endpoint"], second["error"]) == ({"key": "first"}, "key", "url", None)
    assert second["latency_s"] >= 0.02
    assert before <= second["started"] <= time.time()
    assert third["error"] == "ValueError: worse"


def test_what_is_put_into_a_cache_is_found_after_reopening_in_its_table_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cache.sqlite"
    with Cache(path) as cache:
        assert not path.parent.exists()
        assert cache.get("verdicts", b"key") is None
        cache.put("verdicts", b"key", b"one")
        cache.put("verdicts", b"key", b"other")
    with Cache(path) as cache:
        assert (cache.get("verdicts", b"key"), cache.get("embeddings", b"key")) == (b"other", None)
    assert [file.name for file in path.parent.iterdir()] == ["cache.sqlite"]
    path.write_bytes(b"no database" * 1000)
    with Cache(path) as cache, pytest.raises(UserError, match=r"cache\.sqlite is damaged .*delete it"):
        cache.get("embeddings", b"key")


def test_a_cache_closes_while_a_thread_stores(tmp_path: Path) -> None:
    # As when a cell is stopped: without a lock this is a segmentation fault, not an exception.
    with Cache(tmp_path / "cache.sqlite") as cache, ThreadPoolExecutor(1) as thread:
        cache.get("embeddings", b"key")
        stored = [thread.submit(cache.put, "embeddings", bytes([number]), bytes(300_000)) for number in range(30)]
        while not stored[-1].done():
            cache.close()
            time.sleep(0.001)
        assert all(future.exception() is None for future in stored)

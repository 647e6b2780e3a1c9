import asyncio
import hashlib
import multiprocessing
import os
import resource
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.llm.call_log import CallLog, logs_below
from harness.llm.request import Message, Request
from tests.harness.llm.logged import answers, fill, keys, reply, request, running


async def test_a_finished_call_is_found_before_and_after_reopening(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.jsonl") as log:
        await log.append(request("a"), reply("b"))
        assert log.get(request("a").key) == reply("b")
        assert log.get(request("b").key) is None
    with CallLog(tmp_path / "calls.jsonl") as log:
        assert log.get(request("a").key) == reply("b")
        assert request("a").key in log
        assert request("b").key not in log
        assert len(log) == 1


async def test_the_file_says_what_was_asked_and_answered_and_every_text_once(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    asked = [
        Request("m", "r", (Message("system", "be brief"), Message("user", text)), draw=draw)
        for text in ("a", "数\n😀", "")
        for draw in (0, 1)
    ]
    with CallLog(path) as log:
        await asyncio.gather(*(log.append(one, reply("be brief" if one.draw else "")) for one in asked))
    expected = {}
    for one in asked:
        record = orjson.loads(orjson.dumps(one.to_record(), option=orjson.OPT_SORT_KEYS))
        assert one.key == hashlib.sha256(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).hexdigest()
        answer = {"text": "be brief" if one.draw else "", "prompt_tokens": 3, "completion_tokens": 5}
        answer |= {"finish_reason": "stop", "model": "some/model", "error": None}
        expected[one.key] = {"key": one.key, "request": record, "reply": answer}
    assert running(path) == expected
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert sorted(line for line in lines if isinstance(line, str)) == ["", "a", "be brief", "数\n😀"]


def test_what_is_in_memory_does_not_grow_with_the_texts(tmp_path: Path) -> None:
    import tracemalloc

    async def append(log: CallLog, size: int) -> int:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(50):
            await log.append(request(f"{size} {number}"), reply(f"{number}" + "x" * size))
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        with CallLog(tmp_path / "calls.jsonl") as log:
            asyncio.run(append(log, 10))
            small = asyncio.run(append(log, 11))
            assert asyncio.run(append(log, 100_000)) < small + 100_000
    finally:
        tracemalloc.stop()


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_log_torn_anywhere_keeps_the_calls_before_and_goes_on(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("torn") / "calls.jsonl"
    fill(path, "abc")
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    complete = [line for line in whole[:cut].splitlines(keepends=True) if line.endswith(b"\n")]
    calls = [line for line in complete if line.startswith(b"{")]
    assert answers(path, "abc") == {text: text.upper() for text in "abc"[: len(calls)]}
    assert path.read_bytes() == b"".join(complete)
    fill(path, "abc"[len(calls) :])
    assert path.read_bytes() == whole


def test_a_torn_last_line_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "ab")
    os.truncate(path, path.stat().st_size - 7)
    line = len(path.read_bytes().splitlines()[-1])
    answers(path, "a")
    assert caplog.messages == [f"{path}: cut off an unfinished last line ({line} bytes)"]


@pytest.mark.parametrize(
    "damage", [b"{", b"7", b"[]", b"{}", b'{"key": "ab"}', b'{"forget": 1}', b'{"forget": "abcd"}', b"\xff", b""]
)
def test_a_damaged_line_in_the_middle_is_refused_with_its_number(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "ab")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], damage + b"\n", *lines[2:]]))
    with pytest.raises(UserError, match=r"calls\.jsonl, line 3 is damaged .*delete this one line"):
        CallLog(path)
    path.write_bytes(b"".join(lines))
    assert answers(path, "ab") == {"a": "A", "b": "B"}


def test_calls_whose_text_is_gone_or_changed_are_asked_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "calls.jsonl"
    fill(path, "abc")
    whole = path.read_bytes()
    for changed in (whole.replace(b'"B"\n', b""), whole.replace(b'"b"\n', b'"\x78"\n')):
        caplog.clear()
        path.write_bytes(changed)
        assert answers(path, "abc") == {"a": "A", "c": "C"}
        assert caplog.messages == [f"{path}: passed over 1 calls whose texts are gone; they will be asked again"]
    fill(path, "b")
    assert answers(path, "abc") == {"a": "A", "b": "B", "c": "C"}


def _hold(path: Path, ready: "multiprocessing.synchronize.Event", done: "multiprocessing.synchronize.Event") -> None:
    with CallLog(path):
        ready.set()
        done.wait(20)


def test_a_second_writer_stops_and_names_the_first(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(tmp_path / "calls.jsonl", ready, done))
    holder.start()
    try:
        assert ready.wait(20)
        with pytest.raises(UserError, match=f"being written by process {holder.pid}"):
            CallLog(tmp_path / "calls.jsonl")
    finally:
        done.set()
        holder.join()
    CallLog(tmp_path / "calls.jsonl").close()


def _fill(path: Path, outcome: "multiprocessing.queues.Queue[str]") -> None:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    try:
        fill(path, (f"{number} {'x' * 50}" for number in range(100)))
    except UserError as error:
        outcome.put(str(error))


def test_a_disk_that_takes_no_more_gives_one_line_and_loses_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    outcome = context.Queue()
    writer = context.Process(target=_fill, args=(tmp_path / "calls.jsonl", outcome))
    writer.start()
    message = outcome.get(timeout=20)
    writer.join()
    assert "cannot write" in message
    assert "finished calls are kept" in message
    with CallLog(tmp_path / "calls.jsonl") as log:
        assert len(log) >= 1
        assert all(log.get(request(f"{number} {'x' * 50}").key) for number in range(len(log)))


@pytest.mark.parametrize("room", [0, 1, 300, 500, 1000])
async def test_of_calls_written_together_those_that_fit_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path = tmp_path / "calls.jsonl"
    write, left = os.write, room

    def limited(handle: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(28, "No space left on device")
        count = write(handle, data[:left])
        left -= count
        return count

    with CallLog(path) as log:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", limited)
            outcomes = await asyncio.gather(
                *(log.append(request(text), reply(text.upper())) for text in "abcd"), return_exceptions=True
            )
        fitted = [text for text, one in zip("abcd", outcomes, strict=True) if one is None]
        refused = [one for one in outcomes if one is not None]
        assert all(isinstance(one, UserError) and "No space left" in str(one) for one in refused)
        assert "".join(fitted) == "abcd"[: len(fitted)]
        assert path.stat().st_size <= room
        assert len(log) == len(fitted)
        assert sorted(call["reply"]["text"] for call in running(path).values()) == [one.upper() for one in fitted]
        # What the lost calls would have named is written by those that come.
        await log.append(request("d"), reply("A"))
        assert log.get(request("d").key) == reply("A")
    assert answers(path, "abcd") == {**{text: text.upper() for text in fitted}, "d": "A"}


async def test_a_caller_that_gives_up_takes_nothing_back(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.jsonl") as log:
        caller = asyncio.create_task(log.append(request("a"), reply("A")))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert answers(tmp_path / "calls.jsonl", "a") == {"a": "A"}


async def test_nothing_is_unwritten_after_closing(tmp_path: Path) -> None:
    log = CallLog(tmp_path / "calls.jsonl")
    waiting = [asyncio.create_task(log.append(request(str(number)), reply("x"))) for number in range(100)]
    await asyncio.sleep(0)
    log.close()
    log.close()
    assert len(running(tmp_path / "calls.jsonl")) == 100
    await asyncio.gather(*waiting)


def test_logs_are_found_whatever_state_they_are_in(tmp_path: Path) -> None:
    for name in ("running", "sealed", "both"):
        fill(tmp_path / name / "calls.jsonl", "a")
    for name in ("sealed", "both"):
        with CallLog(tmp_path / name / "calls.jsonl") as log:
            log.seal(keys("a"))
    fill(tmp_path / "both" / "calls.jsonl", "b")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "attempts.jsonl").touch()
    assert logs_below(tmp_path) == [tmp_path / name / "calls.jsonl" for name in ("both", "running", "sealed")]


def test_the_key_changes_with_everything_that_can_change_a_reply() -> None:
    base = request("a")
    others = [
        request("b"),
        request("a", temperature=0.7),
        request("a", top_p=0.9),
        request("a", top_k=20),
        request("a", repetition_penalty=1.05),
        request("a", max_tokens=10),
        request("a", draw=1),
        request("a", response_format="{}"),
        Request("other/model", None, base.messages),
        Request("some/model", "abc", base.messages),
        Request("some/model", None, (Message("system", "a"),)),
    ]
    assert len({base.key, *(other.key for other in others)}) == len(others) + 1
    assert base.key == request("a").key


def test_the_key_is_the_same_in_every_version() -> None:
    assert request("a").key == "eb504924e324e9f7f87d1ccd7af1bf7aeb737cbd5937dd7da9222adee1f50ed9"


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write"):
        CallLog(tmp_path / "file" / "calls.jsonl")

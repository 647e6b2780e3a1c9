import multiprocessing
import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserError
from harness.llm.call_log import CallLog, Seal, SealedLog, drop_errors, failed_calls
from harness.llm.request import Message, Reply, Request


def request(text: str, **changes: object) -> Request:
    return Request("some/model", None, (Message("user", text),), **changes)  # type: ignore[arg-type]


def reply(text: str) -> Reply:
    return Reply(text, 3, 5, "stop", "some/model")


def test_a_finished_call_is_found_after_reopening(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.jsonl") as log:
        log.append(request("a"), reply("b"))
    with CallLog(tmp_path / "calls.jsonl") as log:
        assert log.get(request("a").key) == reply("b")
        assert log.get(request("b").key) is None


def test_a_torn_last_line_is_cut_off_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        log.append(request("a"), reply("1"))
        log.append(request("b"), reply("2"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with CallLog(path) as log:
        assert log.get(request("a").key) == reply("1")
        assert log.get(request("b").key) is None
        log.append(request("b"), reply("2"))
    assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        log.append(request("a"), reply("1"))
        log.append(request("b"), reply("2"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0][:20] + b"\n" + lines[1])
    with pytest.raises(UserError, match="line 1 is damaged"):
        CallLog(path)


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
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with CallLog(path) as log:
        try:
            for number in range(100):
                log.append(request(str(number)), reply("x" * 50))
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
        assert all(log.get(request(str(number)).key) for number in range(len(log)))


@given(st.permutations(list(range(6))))
def test_sealed_logs_are_equal_whatever_the_order(order: list[int]) -> None:
    import tempfile

    def seal(numbers: list[int]) -> tuple[Seal, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            log = CallLog(Path(folder) / "calls.jsonl")
            for number in numbers:
                log.append(request(str(number)), reply(str(number)))
            return log.seal({request(str(number)).key for number in numbers}), (
                Path(folder) / "calls.jsonl"
            ).read_bytes()

    assert seal(order) == seal(list(range(6)))


def test_a_sealed_log_answers_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = CallLog(path)
    log.append(request("a"), reply("1"))
    seal = log.seal({request("a").key})
    assert SealedLog(path, seal).get(request("a").key) == reply("1")
    path.write_bytes(path.read_bytes().replace(b'"1"', b'"2"'))
    with pytest.raises(UserError, match="not the log that was sealed"):
        SealedLog(path, seal)


def test_what_is_sealed_depends_on_the_run_and_not_on_what_was_run_before(tmp_path: Path) -> None:
    fresh = CallLog(tmp_path / "fresh" / "calls.jsonl")
    fresh.append(request("a"), reply("1"))
    older = CallLog(tmp_path / "older" / "calls.jsonl")
    for text in ("c", "a", "b"):
        older.append(request(text), reply("1"))
    used = {request("a").key}
    assert fresh.seal(used) == older.seal(used)
    assert (tmp_path / "fresh" / "calls.jsonl").read_bytes() == (tmp_path / "older" / "calls.jsonl").read_bytes()
    with CallLog(tmp_path / "older" / "calls.jsonl") as log:
        assert log.get(request("c").key) == reply("1")
        assert log.seal({request(text).key for text in "abc"}).calls == 3
    assert sorted(path.name for path in (tmp_path / "older").iterdir()) == ["calls.jsonl", "calls.lock"]


def test_a_log_that_lost_calls_of_its_run_is_not_sealed(tmp_path: Path) -> None:
    with CallLog(tmp_path / "calls.jsonl") as log:
        log.append(request("a"), reply("1"))
        with pytest.raises(UserError, match="lacks 1 calls that an earlier part of this run used"):
            log.seal({request("a").key, request("b").key})
    with CallLog(tmp_path / "calls.jsonl") as log:
        assert log.get(request("a").key) == reply("1")


def test_calls_that_finish_after_a_failed_write_are_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "calls.jsonl"
    write = os.write

    def half(handle: int, data: bytes) -> int:
        if len(data) < 60:
            raise OSError(28, "No space left on device")
        return write(handle, data[: len(data) - 30])

    with CallLog(path) as log:
        log.append(request("a"), reply("1"))
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(UserError, match="No space left"):
            log.append(request("b"), reply("2"))
        monkeypatch.undo()
        log.append(request("c"), reply("3"))
    with CallLog(path) as log:
        found = [log.get(request(text).key) for text in "abc"]
    assert found == [reply("1"), None, reply("3")]


def test_errors_are_dropped_and_answers_stay(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        log.append(request("a"), reply("1"))
        log.append(request("b"), Reply.failed("some/model", "context too long"))
    assert failed_calls(path) == 1
    assert drop_errors(path) == 1
    with CallLog(path) as log:
        assert log.get(request("a").key) == reply("1")
        assert log.get(request("b").key) is None
    assert drop_errors(path) == 0


def test_errors_of_other_configurations_are_dropped_too(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    log = CallLog(path)
    log.append(request("a"), reply("1"))
    log.append(request("b"), Reply.failed("some/model", "down"))
    log.seal({request("a").key})
    assert failed_calls(path) == 1
    assert drop_errors(path) == 1
    with CallLog(path) as log:
        assert log.get(request("a").key) == reply("1")
        assert log.get(request("b").key) is None


def test_the_key_changes_with_everything_that_can_change_a_reply() -> None:
    base = request("a")
    others = [
        request("b"),
        request("a", temperature=0.7),
        request("a", top_p=0.9),
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

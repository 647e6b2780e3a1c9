from __future__ import annotations

import asyncio
import errno
import gc
import hashlib
import logging
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from harness.files import ROOT
from harness.llm import embeddings as module
from harness.llm.embeddings import Embeddings
from harness.llm.encoder import Encoded
from tests.fake_encoder import FakeEncoder

SMALL = 4
RECORD = 32 + 4 + 4 * SMALL + 4


class SlowEncoder(FakeEncoder):
    """Finishes nothing before it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def encode(self, text: str) -> Encoded:
        assert self.released.wait(10)
        return super().encode(text)


class BrokenEncoder(FakeEncoder):
    broken = True

    def encode(self, text: str) -> Encoded:
        if self.broken:
            raise UserError("no such model")
        return super().encode(text)


async def fill(folder: Path, name: str, texts: list[str], dimension: int = 384) -> list[str]:
    """Embed texts as one cell, one after the other; which of them had to be encoded."""
    encoder = FakeEncoder(dimension)
    async with Embeddings(encoder, folder, name) as embeddings:
        for text in texts:
            expected = FakeEncoder(dimension).encode(text).vector
            np.testing.assert_array_equal((await embeddings.embed(text)).vector, expected)
    return encoder.encoded


def records(path: Path, dimension: int) -> dict[bytes, tuple[int, tuple[float, ...]]]:
    """A file read by the letter of its description."""
    layout = struct.Struct(f"<32sI{dimension}fI")
    content = path.read_bytes()
    assert len(content) % layout.size == 0
    found = {}
    for at in range(0, len(content), layout.size):
        digest, tokens, *vector, crc = layout.unpack_from(content, at)
        assert crc == zlib.crc32(content[at : at + layout.size - 4])
        found[digest] = (tokens, tuple(vector))
    return found


def start_writer(folder: Path, name: str, texts: str) -> subprocess.Popen[str]:
    """A process that embeds texts one by one, says so after each, and then stays."""
    code = f"""
import asyncio, sys, time
from pathlib import Path
from harness.llm.embeddings import Embeddings
from tests.fake_encoder import FakeEncoder

async def main():
    async with Embeddings(FakeEncoder(), Path({str(folder)!r}), {name!r}) as embeddings:
        for text in {texts}:
            await embeddings.embed(text)
            print(text, flush=True)
        time.sleep(60)

asyncio.run(main())
"""
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)


async def test_an_embedding_is_the_encoders_read_only_and_of_unit_length(tmp_path: Path) -> None:
    async with Embeddings(FakeEncoder(), tmp_path, "cell") as embeddings:
        for text in ("", "a question", "数学 😀"):
            for vector in ((await embeddings.embed(text)).vector, (await embeddings.embed(text)).vector):
                np.testing.assert_array_equal(vector, FakeEncoder().encode(text).vector)
                assert vector.dtype == np.float32
                assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
                with pytest.raises(ValueError, match="read-only"):
                    vector[0] = 1


async def test_a_text_is_encoded_once_for_all_cells(tmp_path: Path) -> None:
    assert await fill(tmp_path, "one", ["a", "b", "a"]) == ["a", "b"]
    assert await fill(tmp_path, "one", ["b", "a", "c"]) == ["c"]
    assert await fill(tmp_path, "two", ["a", "b", "c", "d"]) == ["d"]
    assert len(records(tmp_path / "two.bin", 384)) == 1


async def test_the_file_is_what_its_description_says(tmp_path: Path) -> None:
    texts = ["", "one two three", "数"]
    await fill(tmp_path, "cell", texts, SMALL)
    expected = {}
    for text in texts:
        vector, tokens = FakeEncoder(SMALL).encode(text)
        expected[hashlib.sha256(text.encode()).digest()] = (tokens, tuple(vector.tolist()))
    assert records(tmp_path / "cell.bin", SMALL) == expected


async def test_nothing_is_opened_before_the_first_text(tmp_path: Path) -> None:
    async with Embeddings(FakeEncoder(), tmp_path / "cache", "cell"):
        pass
    assert list(tmp_path.iterdir()) == []


async def test_callers_at_the_same_time_share_the_work(tmp_path: Path) -> None:
    encoder = SlowEncoder()
    async with Embeddings(encoder, tmp_path, "cell") as embeddings:
        callers = [asyncio.create_task(embeddings.embed("same")) for _ in range(20)]
        await asyncio.sleep(0.01)  # the event loop turns while encoding goes on beside it
        assert not any(caller.done() for caller in callers)
        encoder.released.set()
        assert len({made.vector.tobytes() for made in await asyncio.gather(*callers)}) == 1
    assert encoder.encoded == ["same"]
    assert (tmp_path / "cell.bin").stat().st_size == 32 + 4 + 4 * 384 + 4


async def test_every_processor_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    meeting = threading.Barrier(3, timeout=5)

    class Meeting(FakeEncoder):
        def encode(self, text: str) -> Encoded:
            meeting.wait()
            return super().encode(text)

    async with Embeddings(Meeting(), tmp_path, "cell") as embeddings:
        await asyncio.gather(*map(embeddings.embed, "abc"))


async def test_a_caller_that_gives_up_takes_nothing_from_the_others(tmp_path: Path) -> None:
    encoder = SlowEncoder()
    async with Embeddings(encoder, tmp_path, "cell") as embeddings:
        impatient, patient = (asyncio.create_task(embeddings.embed("text")) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        encoder.released.set()
        np.testing.assert_array_equal((await patient).vector, FakeEncoder().encode("text").vector)


async def test_closing_does_not_wait_for_work_nobody_gets(tmp_path: Path) -> None:
    encoder = SlowEncoder()
    embeddings = Embeddings(encoder, tmp_path, "cell")
    waiting = [asyncio.create_task(embeddings.embed(str(index))) for index in range(10)]
    await asyncio.sleep(0.01)
    await asyncio.wait_for(embeddings.close(), 60)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    encoder.released.set()
    await embeddings.close()
    assert (tmp_path / "cell.bin").stat().st_size == 0
    assert await fill(tmp_path, "cell", ["0"]) == ["0"]


async def test_a_failure_reaches_every_caller_and_is_not_kept(tmp_path: Path) -> None:
    encoder = BrokenEncoder()
    async with Embeddings(encoder, tmp_path, "cell") as embeddings:
        outcomes = await asyncio.gather(*(embeddings.embed("text") for _ in range(3)), return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["no such model"] * 3
        encoder.broken = False
        np.testing.assert_array_equal((await embeddings.embed("text")).vector, FakeEncoder().encode("text").vector)


async def test_a_failure_nobody_waits_for_is_not_reported_by_the_loop(tmp_path: Path) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    class Late(SlowEncoder):
        def encode(self, text: str) -> Encoded:
            super().encode(text)
            raise UserError("too late")

    encoder = Late()
    async with Embeddings(encoder, tmp_path, "cell") as embeddings:
        caller = asyncio.create_task(embeddings.embed("text"))
        await asyncio.sleep(0.01)
        caller.cancel()
        await asyncio.sleep(0)
        encoder.released.set()
        while embeddings._in_flight:
            await asyncio.sleep(0.001)
    gc.collect()
    assert reported == []


async def test_the_length_of_a_text_is_kept_beside_its_vector(tmp_path: Path) -> None:
    texts = ["word " * words for words in (1, 3, 4, 40)]
    async with Embeddings(FakeEncoder(max_tokens=5), tmp_path, "cell") as embeddings:
        made = [(await embeddings.embed(text)).tokens for text in texts]
    async with Embeddings(FakeEncoder(max_tokens=5), tmp_path, "other") as embeddings:
        read = [(await embeddings.embed(text)).tokens for text in texts]
    assert made == read == [FakeEncoder(max_tokens=5).encode(text).tokens for text in texts]


async def test_a_killed_process_loses_nothing_it_returned(tmp_path: Path) -> None:
    writer = start_writer(tmp_path, "cell", "map(str, range(10**6))")
    assert writer.stdout is not None
    with writer:
        returned = [writer.stdout.readline().strip() for _ in range(50)]
        writer.send_signal(signal.SIGKILL)
        returned += writer.stdout.read().split("\n")[:-1]
    assert await fill(tmp_path, "reader", returned) == []


async def test_two_processes_write_into_one_folder(tmp_path: Path) -> None:
    writers = [start_writer(tmp_path, name, f"[{name!r} + str(i) for i in range(200)]") for name in ("one", "two")]
    texts = [f"{name}{index}" for name in ("one", "two") for index in range(200)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            for _ in range(200):
                assert writer.stdout.readline()
        assert await fill(tmp_path, "three", texts) == []
        with pytest.raises(UserError, match=r"one\.bin is being written by another process; wait"):
            await fill(tmp_path, "one", ["text"])
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


@settings(max_examples=25, deadline=None)
@given(lost=st.integers(1, 3 * RECORD - 1))
async def test_a_torn_last_record_is_cut_off_and_the_rest_lives(lost: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cell.bin"
        await fill(path.parent, "cell", ["a", "b", "c"], SMALL)
        os.truncate(path, 3 * RECORD - lost)
        whole = (3 * RECORD - lost) // RECORD
        assert await fill(path.parent, "cell", ["a", "b", "c", "d"], SMALL) == ["a", "b", "c", "d"][whole:]
        assert len(records(path, SMALL)) == 4


async def test_a_torn_record_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "cell.bin"
    await fill(tmp_path, "cell", ["a", "b"], SMALL)
    os.truncate(path, 2 * RECORD - 1)
    with caplog.at_level(logging.WARNING):
        await fill(tmp_path, "cell", ["a", "b"], SMALL)
    assert caplog.messages == [f"{path}: cut off an unfinished last record ({RECORD - 1} bytes)"]


async def test_what_another_process_has_begun_is_left_to_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = tmp_path / "other.bin"
    await fill(tmp_path, "other", ["a", "b"], SMALL)
    os.truncate(other, 2 * RECORD - 1)
    with caplog.at_level(logging.WARNING):
        assert await fill(tmp_path, "cell", ["a", "b"], SMALL) == ["b"]
    assert other.stat().st_size == 2 * RECORD - 1
    assert caplog.messages == []


@settings(max_examples=40, deadline=None)
@given(at=st.integers(0, 2 * RECORD - 1), flip=st.integers(1, 255), owner=st.sampled_from(["cell", "other"]))
async def test_a_damaged_record_is_made_again_and_stays_mended(at: int, flip: int, owner: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await fill(folder, owner, ["a", "b"], SMALL)
        path = folder / f"{owner}.bin"
        content = bytearray(path.read_bytes())
        content[at] ^= flip
        path.write_bytes(content)
        assert await fill(folder, "cell", ["a", "b"], SMALL) == ["ab"[at // RECORD]]
        assert await fill(folder, "cell", ["a", "b"], SMALL) == []


async def test_a_damaged_record_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await fill(tmp_path, "cell", ["a", "b"], SMALL)
    content = bytearray((tmp_path / "cell.bin").read_bytes())
    content[-1] ^= 1
    (tmp_path / "cell.bin").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        await fill(tmp_path, "cell", ["a", "b"], SMALL)
        await fill(tmp_path, "cell", ["a", "b"], SMALL)
    assert caplog.messages == [f"{tmp_path / 'cell.bin'}: dropped a damaged record (byte {RECORD})"]


async def test_files_of_something_else_do_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await fill(tmp_path, "narrow", ["a", "b"], SMALL + 1)
    (tmp_path / "rubbish.bin").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "empty.bin").touch()
    (tmp_path / "folder.bin").mkdir()
    with caplog.at_level(logging.WARNING):
        assert await fill(tmp_path, "cell", ["a", "b"], SMALL) == ["a", "b"]
    assert all("passed over" in message or "damaged" in message for message in caplog.messages)


async def test_a_full_disk_is_one_line_and_leaves_whole_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    async with Embeddings(FakeEncoder(SMALL), tmp_path, "cell") as embeddings:
        await embeddings.embed("before")

        def full(handle: int, content: bytes) -> int:
            if len(content) < RECORD:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(handle, content[:10])

        with monkeypatch.context() as patch:
            patch.setattr(module.os, "write", full)
            with pytest.raises(UserError, match=r"cannot write .*cell\.bin: No space left on device; free space"):
                await embeddings.embed("during")
        assert len(records(tmp_path / "cell.bin", SMALL)) == 1
        await embeddings.embed("after")
    assert await fill(tmp_path, "cell", ["before", "after"], SMALL) == []


async def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    async with Embeddings(FakeEncoder(), tmp_path / "cache", "cell") as embeddings:
        with pytest.raises(UserError, match=r"cannot write .*cell\.bin"):
            await embeddings.embed("text")


async def test_deleting_the_cache_changes_no_vector(tmp_path: Path) -> None:
    async with Embeddings(FakeEncoder(), tmp_path, "cell") as embeddings:
        before = (await embeddings.embed("text")).vector.tobytes()
        (tmp_path / "cell.bin").unlink()
        assert (await embeddings.embed("text")).vector.tobytes() == before
    assert await fill(tmp_path, "cell", ["text"]) == ["text"]


async def test_a_file_replaced_behind_its_back_gives_no_wrong_vector(tmp_path: Path) -> None:
    await fill(tmp_path, "other", ["a"], SMALL)
    async with Embeddings(FakeEncoder(SMALL), tmp_path, "cell") as embeddings:
        await embeddings.embed("first")
        (tmp_path / "other.bin").unlink()
        await fill(tmp_path, "other", ["b"], SMALL)
        np.testing.assert_array_equal((await embeddings.embed("a")).vector, FakeEncoder(SMALL).encode("a").vector)


async def test_bytes_do_not_depend_on_how_the_work_was_divided(tmp_path: Path) -> None:
    texts = [f"text {index}" for index in range(40)]
    await fill(tmp_path / "one", "cell", texts, SMALL)
    await fill(tmp_path / "two", "left", texts[20:], SMALL)
    await fill(tmp_path / "two", "right", texts[::-1], SMALL)
    divided = records(tmp_path / "two" / "left.bin", SMALL) | records(tmp_path / "two" / "right.bin", SMALL)
    assert divided == records(tmp_path / "one" / "cell.bin", SMALL)

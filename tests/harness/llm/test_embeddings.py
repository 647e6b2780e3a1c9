from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from harness.errors import UserError
from harness.llm.database import Cache
from harness.llm.embeddings import Embeddings
from harness.llm.encoder import Encoded
from tests.fake_encoder import FakeEncoder


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


async def fill(folder: Path, texts: list[str], identity: str = "fake") -> list[str]:
    """Embed texts as one cell, one after the other; which of them had to be encoded."""
    encoder = FakeEncoder()
    encoder.identity = identity
    async with Embeddings(encoder, Cache(folder / "cache.sqlite")) as embeddings:
        for text in texts:
            expected = FakeEncoder().encode(text).vector
            np.testing.assert_array_equal((await embeddings.embed(text)).vector, expected)
    return encoder.encoded


async def test_an_embedding_is_the_encoders_read_only_and_of_unit_length(tmp_path: Path) -> None:
    async with Embeddings(FakeEncoder(), Cache(tmp_path / "cache.sqlite")) as embeddings:
        for text in ("", "a question", "数学 😀"):
            for vector in ((await embeddings.embed(text)).vector, (await embeddings.embed(text)).vector):
                np.testing.assert_array_equal(vector, FakeEncoder().encode(text).vector)
                assert vector.dtype == np.float32
                assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
                with pytest.raises(ValueError, match="read-only"):
                    vector[0] = 1


async def test_a_text_is_encoded_once_for_all_cells(tmp_path: Path) -> None:
    assert await fill(tmp_path, ["a", "b", "a"]) == ["a", "b"]
    assert await fill(tmp_path, ["b", "a", "c"]) == ["c"]
    assert await fill(tmp_path, ["a", "b", "c", "d"]) == ["d"]
    assert await fill(tmp_path, ["a"], identity="another encoder") == ["a"]


async def test_callers_at_the_same_time_share_the_work(tmp_path: Path) -> None:
    encoder = SlowEncoder()
    async with Embeddings(encoder, Cache(tmp_path / "cache.sqlite")) as embeddings:
        callers = [asyncio.create_task(embeddings.embed("same")) for _ in range(20)]
        await asyncio.sleep(0.01)  # the event loop runs while a thread encodes
        assert not any(caller.done() for caller in callers)
        encoder.released.set()
        assert len({made.vector.tobytes() for made in await asyncio.gather(*callers)}) == 1
    assert encoder.encoded == ["same"]


async def test_every_processor_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    meeting = threading.Barrier(3, timeout=5)

    class Meeting(FakeEncoder):
        def encode(self, text: str) -> Encoded:
            meeting.wait()
            return super().encode(text)

    async with Embeddings(Meeting(), Cache(tmp_path / "cache.sqlite")) as embeddings:
        await asyncio.gather(*map(embeddings.embed, "abc"))


async def test_a_caller_that_gives_up_takes_nothing_from_the_others(tmp_path: Path) -> None:
    encoder = SlowEncoder()
    async with Embeddings(encoder, Cache(tmp_path / "cache.sqlite")) as embeddings:
        impatient, patient = (asyncio.create_task(embeddings.embed("text")) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        encoder.released.set()
        np.testing.assert_array_equal((await patient).vector, FakeEncoder().encode("text").vector)


async def test_closing_does_not_wait_for_work_nobody_gets(tmp_path: Path) -> None:
    encoder = SlowEncoder()
    embeddings = Embeddings(encoder, Cache(tmp_path / "cache.sqlite"))
    waiting = [asyncio.create_task(embeddings.embed(str(index))) for index in range(10)]
    await asyncio.sleep(0.01)
    await asyncio.wait_for(embeddings.close(), 60)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    encoder.released.set()
    await embeddings.close()
    assert await fill(tmp_path, ["0"]) == ["0"]


async def test_a_failure_reaches_every_caller_and_is_not_kept(tmp_path: Path) -> None:
    encoder = BrokenEncoder()
    async with Embeddings(encoder, Cache(tmp_path / "cache.sqlite")) as embeddings:
        outcomes = await asyncio.gather(*(embeddings.embed("text") for _ in range(3)), return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["no such model"] * 3
        encoder.broken = False
        np.testing.assert_array_equal((await embeddings.embed("text")).vector, FakeEncoder().encode("text").vector)


async def test_the_length_of_a_text_is_kept_beside_its_vector(tmp_path: Path) -> None:
    texts = ["word " * words for words in (1, 3, 4, 40)]
    async with Embeddings(FakeEncoder(max_tokens=5), Cache(tmp_path / "cache.sqlite")) as embeddings:
        made = [(await embeddings.embed(text)).tokens for text in texts]
    async with Embeddings(FakeEncoder(max_tokens=5), Cache(tmp_path / "cache.sqlite")) as embeddings:
        read = [(await embeddings.embed(text)).tokens for text in texts]
    assert made == read == [FakeEncoder(max_tokens=5).encode(text).tokens for text in texts]

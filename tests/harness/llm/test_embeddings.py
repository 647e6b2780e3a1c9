from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from harness.llm.database import Cache
from harness.llm.embeddings import Embeddings
from tests.fake_encoder import FakeEncoder


async def fill(folder: Path, texts: list[str], identity: str = "fake") -> list[str]:
    """Embed texts as one cell, one after the other; which of them had to be encoded."""
    encoder = FakeEncoder()
    encoder.identity = identity
    async with Embeddings(encoder, Cache(folder / "cache.sqlite")) as embeddings:
        for text in texts:
            found, expected = await embeddings.embed(text), FakeEncoder().encode(text)
            np.testing.assert_array_equal(found.vector, expected.vector)
            assert (found.vector.dtype, found.tokens) == (np.float32, expected.tokens)
            assert not found.vector.flags.writeable
    return encoder.encoded


async def test_a_text_is_encoded_once_for_all_cells(tmp_path: Path) -> None:
    assert await fill(tmp_path, ["a text of words", "", "a text of words"]) == ["a text of words", ""]
    assert await fill(tmp_path, ["", "a text of words", "数学 😀"]) == ["数学 😀"]
    assert await fill(tmp_path, [""], identity="another encoder") == [""]


async def test_a_failure_reaches_every_caller_and_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Embeddings(FakeEncoder(), Cache(tmp_path / "cache.sqlite")) as embeddings:
        with monkeypatch.context() as broken:
            broken.setattr(FakeEncoder, "encode", lambda *_: 1 / 0)
            outcomes = await asyncio.gather(*(embeddings.embed("text") for _ in range(3)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 3
        np.testing.assert_array_equal((await embeddings.embed("text")).vector, FakeEncoder().encode("text").vector)

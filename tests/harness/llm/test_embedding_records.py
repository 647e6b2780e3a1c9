"""Embeddings picked out of a cache, and what remembers which were looked at."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from harness.errors import UserError
from harness.llm.embeddings import Embeddings, records
from tests.fake_encoder import FakeEncoder

TEXTS = ["one", "two", "three", "four"]
DIGESTS = {text: hashlib.sha256(text.encode()).hexdigest() for text in TEXTS}


async def fill(folder: Path) -> None:
    for name, texts in (("a", TEXTS[:2]), ("b", TEXTS[2:])):
        async with Embeddings(FakeEncoder(), folder, name) as cache:
            for text in texts:
                await cache.embed(text)


async def test_what_was_asked_for_is_remembered_whether_it_was_known_or_not(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with Embeddings(FakeEncoder(), tmp_path, "c") as cache:
        for text in ("two", "new", "two"):
            await cache.embed(text)
        assert set(cache.seen) == {DIGESTS["two"], hashlib.sha256(b"new").hexdigest()}


async def test_records_are_a_cache_again_and_come_in_the_order_asked_for(tmp_path: Path) -> None:
    await fill(tmp_path / "all")
    before = sorted((tmp_path / "all").iterdir())
    wanted = [DIGESTS["four"], DIGESTS["one"]]
    found = list(records(tmp_path / "all", wanted, 384))
    assert [record[:32].hex() for record in found] == wanted
    assert sorted((tmp_path / "all").iterdir()) == before
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "recorded.bin").write_bytes(b"".join(found))
    encoder = FakeEncoder()
    async with Embeddings(encoder, tmp_path / "some", "own") as cache:
        for text in ("four", "one"):
            expected = FakeEncoder().encode(text)
            encoded = await cache.embed(text)
            assert np.array_equal(encoded.vector, expected.vector)
            assert encoded.tokens == expected.tokens
    assert encoder.encoded == []


async def test_an_embedding_that_is_not_there_is_named(tmp_path: Path) -> None:
    await fill(tmp_path)
    with pytest.raises(UserError, match=r"lacks the embedding of a text \(SHA-256 0{64}\)"):
        list(records(tmp_path, ["0" * 64], 384))

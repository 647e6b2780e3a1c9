"""Embedded texts per second, for new and for cached texts."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.database import Cache
from harness.llm.encoder import Embeddings, SentenceEncoder
from tests.benchmarks.conftest import FEW, Measure

TEXTS = 64
TOKENS = (30, 150, 400)
# Word pieces around every text.
SPECIAL = 2


@pytest.fixture(scope="module")
def encoder(graphs: Path) -> Iterator[SentenceEncoder]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GMR_CACHE_DIR", str(graphs))
        yield SentenceEncoder()


def texts(tokens: int, count: int, run: int) -> list[str]:
    """Return different texts of the given length; digits are a word piece each, with a space between them."""
    numbers = (f"{run:03}{number:04}" for number in range(count))
    return [" ".join((digits + "7" * tokens)[: tokens - SPECIAL]) for digits in numbers]


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("cached", [False, True], ids=["cold", "cached"])
def test_embeddings(
    cached: bool, tokens: int, encoder: SentenceEncoder, benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path
) -> None:
    benchmark.group = f"{tokens} tokens"
    count = TEXTS if benchmark.enabled else FEW
    assert encoder.encode(texts(tokens, 1, 0)[0]).tokens == tokens, "and the model is loaded"

    async def embed(run: int) -> None:
        async with Embeddings(encoder, Cache(tmp_path / "cache.sqlite")) as embeddings:
            found = await asyncio.gather(*map(embeddings.embed, texts(tokens, count, run)))
        assert {one.tokens for one in found} == {tokens}

    asyncio.run(embed(0))
    measure(benchmark, lambda run: asyncio.run(embed(0 if cached else 1 + run)), count)

"""Calls per second of an evaluation before a modelled server, beside a loop that does nothing but send them."""

import asyncio
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from baselines.single import SingleLLM
from tests.benchmarks.conftest import FEW, Measure
from tests.evidence.driving import Driven, bare, ours, questions, runtime
from tests.evidence.server import Model, report, served
from tests.fake_encoder import FakeEncoder

BACKBONE = "llama-3.1-8B"
SECONDS = 0.1
WAVES = 20


@pytest.mark.parametrize("places", [16, 64, 256])
@pytest.mark.parametrize("by", ["ours", "bare"])
def test_evaluation(by: str, places: int, benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path) -> None:
    benchmark.group = f"{places} places"
    items = questions(places * WAVES if benchmark.enabled else FEW)
    shares, processor = [], []

    async def through_us(url: str, folder: Path) -> Driven:
        async with runtime(url, places, folder, FakeEncoder()) as place:
            return await ours(SingleLLM(BACKBONE), items, place, 2 * places, folder)

    def one(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        with served(Model(places, SECONDS)) as url:
            driven = asyncio.run(through_us(url, folder) if by == "ours" else bare(url, BACKBONE, items, places))
            found = report(url)
        assert found["requests"] == driven.calls == len(items)
        shares.append(round(found["utilisation"], 3))
        processor.append(round(1000 * driven.cpu_s / driven.calls, 2))

    measure(benchmark, one, len(items))
    benchmark.extra_info.update(utilisation=shares, cpu_ms_per_call=processor)

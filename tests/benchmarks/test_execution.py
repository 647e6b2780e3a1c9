"""Programs per second, in the sandbox and from the cache of verdicts."""

import asyncio
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.benchmarks.items import Item
from harness.benchmarks.prepare import load_items
from harness.database import Cache
from harness.errors import UserError
from harness.sandbox import Outcome, Program, Sandbox
from tests.benchmarks.conftest import DATA, Measure, chosen

TRIVIAL = Program("def one():\n    return 1\n", checks="assert one() == 1\n", entry_point="one")


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return load_items("humaneval", DATA).items


def program(item: Item, run: int) -> Program:
    return Program(f"{item.gold}\n# {run}\n", item.code.setup, f"{item.code.checks}\n# {run}\n", item.code.entry_point)


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("level", ["full", "rlimit"])
def test_sandbox(level: str, workers: int, items: list[Item], benchmark: BenchmarkFixture, measure: Measure) -> None:
    benchmark.group = f"{workers} workers"
    subjects = chosen(benchmark, items)
    workers = workers if benchmark.enabled else 1
    try:
        pool = Sandbox(workers=workers, level=level)
    except UserError as error:
        pytest.skip(str(error))

    async def all_pass(programs: list[Program]) -> bool:
        return all(found.outcome is Outcome.PASSED for found in await asyncio.gather(*map(pool.run, programs)))

    with asyncio.Runner() as runner:
        # Starts the workers.
        assert runner.run(all_pass([TRIVIAL] * workers))

        def once(run: int) -> None:
            assert runner.run(all_pass([program(item, run) for item in subjects]))

        measure(benchmark, once, len(subjects))
        runner.run(pool.__aexit__(None, None, None))


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_verdicts(
    known: bool, items: list[Item], benchmark: BenchmarkFixture, measure: Measure, tmp_path: Path
) -> None:
    """Through the cache that all cells of a machine share, each round as another cell."""
    benchmark.group = "cache of verdicts"
    subjects = chosen(benchmark, items)

    async def cell(run: int) -> None:
        async with Sandbox(workers=2 if benchmark.enabled else 1, cache=Cache(tmp_path / "cache.sqlite")) as pool:
            await asyncio.gather(*(pool.run(program(item, run)) for item in subjects))

    asyncio.run(cell(0))
    measure(benchmark, lambda run: asyncio.run(cell(0 if known else 1 + run)), len(subjects))

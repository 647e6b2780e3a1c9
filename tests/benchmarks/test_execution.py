"""Programs per second through the sandbox and through HumanEval's own execution, both with fresh programs."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.benchmarks.catalogue import entry
from harness.benchmarks.humaneval import HumanEval
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import load
from harness.database import Cache
from harness.errors import UserError
from harness.sandbox import Outcome, Program, Sandbox
from tests.benchmarks.conftest import DATA, Measure, chosen

WORKERS = (1, 2, 8)
LEVELS = ("full", "rlimit")
TRIVIAL = Program("def one():\n    return 1\n", checks="assert one() == 1\n", entry_point="one")


@pytest.fixture(scope="module")
def records() -> dict[str, dict[str, Any]]:
    return {record["task_id"]: record for record in load(entry("humaneval"), DATA).rows}


@pytest.fixture(scope="module")
def items(records: dict[str, dict[str, Any]]) -> list[Item]:
    return HumanEval("humaneval", "HumanEval").normalise(list(records.values()))


def sandbox(workers: int, level: str) -> Sandbox:
    try:
        return Sandbox(workers=workers, level=level)
    except UserError as error:
        pytest.skip(str(error))


def program(item: Item, run: int) -> Program:
    return Program(f"{item.gold}\n# {run}\n", item.code.setup, f"{item.code.checks}\n# {run}\n", item.code.entry_point)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("level", LEVELS)
def test_sandbox(level: str, workers: int, items: list[Item], benchmark: BenchmarkFixture, measure: Measure) -> None:
    benchmark.group = f"{workers} workers"
    subjects = chosen(benchmark, items)
    workers = workers if benchmark.enabled else 1

    async def all_pass(programs: list[Program]) -> bool:
        return all(found.outcome is Outcome.PASSED for found in await asyncio.gather(*map(pool.run, programs)))

    with asyncio.Runner() as runner:
        pool = sandbox(workers, level)
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


@pytest.fixture
def official() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).with_name("official.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize("workers", WORKERS)
def test_human_eval(
    workers: int,
    items: list[Item],
    records: dict[str, dict[str, Any]],
    official: subprocess.Popen[str],
    benchmark: BenchmarkFixture,
    measure: Measure,
) -> None:
    benchmark.group = f"{workers} workers"
    subjects = [records[item.id] for item in chosen(benchmark, items)]

    def once(run: int) -> None:
        problems = [{**record, "completion": f"{record['canonical_solution']}\n# {run}\n"} for record in subjects]
        official.stdin.write(json.dumps({"workers": workers, "problems": problems}) + "\n")
        official.stdin.flush()
        assert json.loads(official.stdout.readline())["passed"] == len(subjects)

    measure(benchmark, once, len(subjects))

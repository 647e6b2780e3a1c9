"""Run full benchmarks with ``--benchmark-enable``, else one small variant of each as a check."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from harness.benchmarks.items import Item, keyed_order

DATA = "real" if os.environ.get("GMR_DATA_DIR") else "embedded"
FEW = 3
ROUNDS = 5

Measure = Callable[[BenchmarkFixture, Callable[[int], None], int], None]


@pytest.fixture
def measure(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Measure:
    """Return a function that benchmarks a function of the round number, so that rounds share no cache."""

    def one(benchmark: BenchmarkFixture, target: Callable[[int], None], count: int) -> None:
        numbers = iter(range(ROUNDS + 1))
        benchmark.pedantic(target, setup=lambda: ((next(numbers),), {}), rounds=ROUNDS)
        if benchmark.stats is not None:
            with capsys.disabled():
                print(f"{count / benchmark.stats.stats.median:12.1f} /s   {request.node.name}")  # noqa: T201

    return one


def chosen(benchmark: BenchmarkFixture, items: list[Item], most: int | None = None) -> list[Item]:
    """Return all items, or the first ones in a fixed order; only a few unless benchmarks are enabled."""
    by_id = {item.id: item for item in items}
    return [by_id[id_] for id_ in keyed_order(by_id, "benchmark")[: most if benchmark.enabled else FEW]]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one variant of each benchmark unless benchmarks are enabled."""
    if not config.getoption("benchmark_enable"):
        here = [item for item in items if item.path.parent == Path(__file__).parent]
        firsts = {item.name.partition("[")[0]: item for item in reversed(here)}
        items[:] = [item for item in items if item not in here or item in firsts.values()]

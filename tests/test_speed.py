"""The rates that CONTRIBUTING.md quotes, measured with ``--benchmark-enable``."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from gmr.config import Config
from gmr.router import Router
from gmr.training import evaluate
from harness.benchmarks.items import Item
from harness.benchmarks.prepare import load_items
from harness.database import Cache
from harness.files import ROOT
from harness.llm.embeddings import Embeddings
from harness.llm.encoder import SentenceEncoder
from harness.runner import layout
from harness.sandbox import Outcome, Program, Sandbox
from harness.training.learning import Learning
from tests.gmr.fixtures import new_router, trace, units
from tests.small_run import SINGLE, make, smoke

pytestmark = pytest.mark.skipif("not config.getoption('benchmark_enable')", reason="measured with --benchmark-enable")

DATA = "real" if os.environ.get("GMR_DATA_DIR") else "embedded"
ROUNDS = 5
LIMIT = "limit={train: 1, test: 6, epochs: 1}"
STEPS, GROUP, BATCH, ROLES, BACKBONES = 6, 6, 16, 26, 5


class Measure:
    """Print how often something happens in a second. A target is given the round, so that rounds share no cache."""

    def __init__(self, benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], name: str) -> None:
        self._benchmark, self._capsys, self._name = benchmark, capsys, name

    def __call__(self, target: Callable[[int], object], count: int) -> None:
        numbers = iter(range(ROUNDS + 1))
        self._benchmark.pedantic(target, setup=lambda: ((next(numbers),), {}), rounds=ROUNDS)
        with self._capsys.disabled():
            print(f"{count / self._benchmark.stats.stats.median:12.1f} /s   {self._name}")  # noqa: T201


@pytest.fixture
def measure(benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Measure:
    return Measure(benchmark, capsys, request.node.name)


def test_a_cell_of_six_questions(measure: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    make(smoke())
    named = ["--method", SINGLE.method, "--benchmark", SINGLE.benchmark, "--backbone", SINGLE.backbone]
    command = [sys.executable, "-m", "cli.main", "cell", "--preset", "smoke", *named]
    folder = layout.cell("smoke", SINGLE)

    def run(_: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([*command, "--set", "benchmarks=[gsm_hard]", "--set", LIMIT], check=True, capture_output=True)
        assert (folder / "run.json").is_file()

    measure(run, 1)


@pytest.mark.parametrize("tokens", [30, 400])
def test_embeddings(
    tokens: int, measure: Measure, graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GMR_CACHE_DIR", str(graphs))
    encoder, count = SentenceEncoder(), 64

    async def embed(run: int) -> None:
        # A digit is a word piece, two more surround the text.
        texts = [" ".join(f"{run:03}{number:04}{'7' * tokens}"[: tokens - 2]) for number in range(count)]
        async with Embeddings(encoder, Cache(tmp_path / "cache.sqlite")) as embeddings:
            found = await asyncio.gather(*map(embeddings.embed, texts))
        assert {one.tokens for one in found} == {tokens}

    asyncio.run(embed(ROUNDS + 1))
    measure(lambda run: asyncio.run(embed(run)), count)


def router() -> Router:
    rng = np.random.default_rng(0)
    return new_router(Config(epochs={"default": 0}, max_depth=STEPS), units(rng, ROLES), units(rng, BACKBONES))


def test_updates(measure: Measure) -> None:
    """From finished trajectories of 1 to 6 steps, six a question, to the changed parameters."""
    rng, learning = np.random.default_rng(0), Learning(router(), 0.01)
    traces = [trace(rng, 1 + number % STEPS) for number in range(BATCH * GROUP)]

    def step(_: int) -> None:
        evaluation = evaluate(learning.network, traces)
        vae = learning.network.vae_loss(torch.Generator())
        learning.step(evaluation.log_prob.mean() - evaluation.mean_entropy + vae)

    measure(step, 1)


def program(item: Item, run: int) -> Program:
    return Program(f"{item.gold}\n# {run}\n", item.code.setup, f"{item.code.checks}\n# {run}\n", item.code.entry_point)


def test_programs_in_two_workers(measure: Measure) -> None:
    items = load_items("humaneval", DATA).items
    with asyncio.Runner() as runner:
        sandbox = Sandbox(workers=2)

        async def pass_all(run: int) -> None:
            found = await asyncio.gather(*(sandbox.run(program(item, run)) for item in items))
            assert all(each.outcome is Outcome.PASSED for each in found)

        runner.run(pass_all(ROUNDS + 1))  # Starts the workers.
        measure(lambda run: runner.run(pass_all(run)), len(items))
        runner.run(sandbox.__aexit__(None, None, None))

"""The times that CONTRIBUTING.md quotes: ``pytest tests/test_speed.py --benchmark-enable`` prints a table."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gmr.config import Config
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
STEPS, GROUP, BATCH, ROLES, BACKBONES = 6, 6, 16, 26, 5
Measure = Callable[[Callable[[int], object]], object]


@pytest.fixture
def measure(benchmark: Any) -> Measure:
    """Measure a function, which is given the number of the round, so that rounds share no cache."""
    numbers = count()
    return partial(benchmark.pedantic, setup=lambda: ((next(numbers),), {}), rounds=5, warmup_rounds=1)


def test_a_cell_of_six_questions(measure: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    make(smoke())
    named = ["--method", SINGLE.method, "--benchmark", SINGLE.benchmark, "--backbone", SINGLE.backbone]
    few = ["--set", "benchmarks=[gsm_hard]", "--set", "limit={train: 1, test: 6, epochs: 1}"]
    folder = layout.cell("smoke", SINGLE)

    def run(_: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "cli.main", "cell", "--preset", "smoke", *named, *few]
        subprocess.run(command, check=True, capture_output=True)
        assert (folder / "run.json").is_file()

    measure(run)


@pytest.mark.parametrize("tokens", [30, 400])
def test_64_embeddings(
    tokens: int, measure: Measure, graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GMR_CACHE_DIR", str(graphs))
    encoder = SentenceEncoder()

    async def embed(run: int) -> None:
        # A digit is a word piece, two more surround the text.
        texts = [" ".join(f"{run:03}{number:04}{'7' * tokens}"[: tokens - 2]) for number in range(64)]
        async with Embeddings(encoder, Cache(tmp_path / "cache.sqlite")) as embeddings:
            found = await asyncio.gather(*map(embeddings.embed, texts))
        assert {one.tokens for one in found} == {tokens}

    measure(lambda run: asyncio.run(embed(run)))


def test_an_update_from_finished_trajectories_of_1_to_6_steps_six_a_question(measure: Measure) -> None:
    rng, config = np.random.default_rng(0), Config(epochs={"default": 0}, max_depth=STEPS)
    learning = Learning(new_router(config, units(rng, ROLES), units(rng, BACKBONES)), 0.01)
    traces = [trace(rng, 1 + number % STEPS) for number in range(BATCH * GROUP)]

    def step(_: int) -> None:
        evaluation = evaluate(learning.network, traces)
        vae = learning.network.vae_loss(torch.Generator())
        learning.step(evaluation.log_prob.mean() - evaluation.mean_entropy + vae)

    measure(step)


def program(item: Item, run: int) -> Program:
    return Program(f"{item.gold}\n# {run}\n", item.code.setup, f"{item.code.checks}\n# {run}\n", item.code.entry_point)


def test_all_programs_of_humaneval_in_two_workers(measure: Measure) -> None:
    items = load_items("humaneval", DATA).items
    with asyncio.Runner() as runner:
        sandbox = Sandbox(workers=2)

        async def pass_all(run: int) -> None:
            found = await asyncio.gather(*(sandbox.run(program(item, run)) for item in items))
            assert all(each.outcome is Outcome.PASSED for each in found)

        measure(lambda run: runner.run(pass_all(run)))
        runner.run(sandbox.__aexit__(None, None, None))

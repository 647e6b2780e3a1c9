"""The times that CONTRIBUTING.md quotes: ``pytest tests/test_speed.py --benchmark-enable`` prints a table."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gmr.config import Config
from gmr.training import evaluate
from harness.benchmarks.prepare import load_items
from harness.llm.encoder import SentenceEncoder
from harness.runner import layout
from harness.sandbox import Outcome, Program, Sandbox
from harness.training.learning import Learning
from tests.command import gmr_process
from tests.gmr.fixtures import new_router, trace, units
from tests.small_run import SINGLE, make, smoke

pytestmark = pytest.mark.skipif("not config.getoption('benchmark_enable')", reason="measured with --benchmark-enable")

ROUNDS: dict[str, Any] = {"rounds": 5, "warmup_rounds": 1}


def test_a_cell_of_six_questions(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(smoke())
    named = ["--method", SINGLE.method, "--benchmark", SINGLE.benchmark, "--backbone", SINGLE.backbone]
    few = ["--set", "benchmarks=[gsm_hard]", "--set", "limit={train: 1, test: 6, epochs: 1}"]

    def run() -> None:
        shutil.rmtree(layout.cell("smoke", SINGLE), ignore_errors=True)
        gmr_process("cell", "--preset", "smoke", *named, *few, folder=tmp_path)

    benchmark.pedantic(run, **ROUNDS)


@pytest.mark.parametrize("tokens", [30, 400])
def test_an_embedding(tokens: int, benchmark: Any, graphs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GMR_CACHE_DIR", str(graphs))
    # A digit is a word piece, two more surround the text.
    encoder, text = SentenceEncoder(), " ".join("7" * (tokens - 2))
    assert encoder.encode(text).tokens == tokens
    benchmark.pedantic(encoder.encode, (text,), **ROUNDS)


def test_an_update_from_finished_trajectories_of_1_to_6_steps_six_a_question(benchmark: Any) -> None:
    rng, config = np.random.default_rng(0), Config(epochs={"default": 0}, max_depth=6)
    learning = Learning(new_router(config, units(rng, 26), units(rng, 5)), 0.01)
    traces = [trace(rng, 1 + number % 6) for number in range(16 * 6)]

    def step() -> None:
        evaluation = evaluate(learning.network, traces)
        vae = learning.network.vae_loss(torch.Generator())
        learning.step(evaluation.log_prob.mean() - evaluation.mean_entropy + vae)

    benchmark.pedantic(step, **ROUNDS)


def test_all_programs_of_humaneval_in_two_workers(benchmark: Any) -> None:
    tasks = [(item.gold, item.code) for item in load_items("humaneval", "real").items]
    programs = [Program(gold, code.setup, code.checks, code.entry_point) for gold, code in tasks if code]

    async def run() -> None:
        async with Sandbox(workers=2) as sandbox:
            found = await asyncio.gather(*map(sandbox.run, programs))
        assert {each.outcome for each in found} == {Outcome.PASSED}

    benchmark.pedantic(lambda: asyncio.run(run()), **ROUNDS)

"""The method, backbone and benchmark that docs/adding.md adds, with code taken from that page."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from baselines.cheap import logistic_router
from harness.scripted import setting
from harness.training.loop import Learned
from tests.docs import additions
from tests.fixtures import learned

BACKBONE = "qwen-2.5-7B"
# Several commands in one process, which loads everything once.
_COMMANDS = """
import json, sys
from cli import main
for words in json.loads(sys.argv[1]):
    main.app(words, standalone_mode=False)
"""


def python(folder: Path, *words: str, **environment: str) -> None:
    given = {**os.environ, "PYTHONPATH": str(folder), **environment}
    command = [sys.executable, *words]
    ended = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr


def commands(preset: str, *commands: str, **settings: str) -> list[list[str]]:
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return [[*command.split(), "--preset", preset, *overrides] for command in commands]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, graphs: Path) -> Path:
    """Run the method and the backbone on a few questions, and a method on the benchmark, in one process."""
    suite = additions.suite(tmp_path_factory.mktemp("adding") / "suite", "A backbone", "A benchmark")
    python(suite, "-c", additions.programs("A benchmark")[0])
    where = {additions.METHOD: "pool", "single": BACKBONE}
    cells = [f"cell --method {name} --benchmark gsm_hard --backbone {row}" for name, row in where.items()]
    few = {"benchmarks": "[gsm_hard]", "limit": "{train: 12, test: 6}", "extra": "my/methods.yaml"}
    both = {"backbones": f"[qwen-2.5-14B, {BACKBONE}]", "methods": f"[single, {additions.METHOD}]"}
    alone = {"backbones": f"[{BACKBONE}]", "methods": "[single]"}
    days = {"benchmarks": "[weekdays]", "methods": "[cot]", "backbones": "[qwen-2.5-14B]", "limit": "{test: 10}"}
    cot = "cell --method cot --benchmark weekdays --backbone qwen-2.5-14B"
    words = [
        *commands("smoke", "data --benchmark gsm_hard", *cells, **few, **both),
        *commands("smoke", "report main_table", **few, **alone),
        *commands("embedded", "data --benchmark weekdays", cot, "report main_table", **{**few, **days}),
    ]
    python(suite, "-c", _COMMANDS, json.dumps(words), GMR_CACHE_DIR=str(graphs))
    python(suite, "-c", additions.programs("As a library")[0], GMR_CACHE_DIR=str(graphs))
    return suite


def rows(suite: Path, cell: str, table: str) -> list[dict[str, Any]]:
    folder = suite / "results/smoke/cells" / cell / "seed0"
    return pq.read_table(folder / f"{table}.parquet").to_pylist()


def test_a_method_from_outside_is_a_file_and_an_entry_and_learns_as_scikit_learn_does(ran: Path) -> None:
    cell = f"{additions.METHOD}/gsm_hard/pool"
    folder = ran / "results/smoke/cells" / cell / "seed0"
    facts = orjson.loads((folder / "run.json").read_bytes())
    assert (facts["method"], facts["simulated"]) == (additions.METHOD, True)
    outcomes = learned(folder).tensors
    names = ("embeddings", "correct", "costs")
    embeddings, correct, costs = (outcomes[name] for name in names)
    assert len(correct) == 12
    assert {*correct.sum(axis=0)}.isdisjoint({0, 12}), "else there is nothing to fit"
    router = logistic_router.build(setting("pool"), logistic_router.Config())
    training = AsyncMock()
    training.outcomes.return_value = Learned({name: outcomes[name] for name in names}, {})
    asyncio.run(router.fit(training))
    fitted = [LogisticRegression().fit(embeddings, column).predict_proba(embeddings)[:, 1] for column in correct.T]
    chances = router.layer(torch.tensor(embeddings).double()).sigmoid().detach().numpy()
    assert np.allclose(chances, np.transpose(fitted), atol=2e-3)
    assert np.allclose(router.costs, costs.mean(axis=0))
    chosen = {row["item_id"]: row["choice"] for row in rows(ran, cell, "decisions")}
    assert {row["item_id"]: row["backbone"] for row in rows(ran, cell, "calls")} == chosen
    assert {*chosen.values()} <= {*facts["backbones"]}


def test_a_backbone_is_an_entry_and_what_is_assumed_of_it(ran: Path) -> None:
    facts = orjson.loads((ran / f"results/smoke/cells/single/gsm_hard/{BACKBONE}/seed0/run.json").read_bytes())
    assert list(facts["backbones"]) == [BACKBONE]
    table = (ran / "reports/smoke/main_table.md").read_text()
    assert any("Single LLM" in line for line in table.splitlines() if BACKBONE in line)


def test_a_benchmark_goes_from_its_file_to_its_column(ran: Path) -> None:
    cell = ran / "results/embedded/cells/cot/weekdays/qwen-2.5-14B/seed0"
    items = pq.read_table(cell / "items.parquet").to_pylist()
    assert len(items) == 10
    assert {item["status"] for item in items} == {"graded"}
    table = (ran / "reports/embedded/main_table.md").read_text()
    assert "Weekdays Sim." in table
    row = next(line for line in table.splitlines() if line.startswith("| CoT"))
    assert f"{10 * sum(one['correct'] for one in items):.2f}" in row


def test_a_program_trains_and_tests_a_cell_without_a_workflow(ran: Path) -> None:
    assert len(rows(ran, "gmr/gsm_hard/pool", "items")) == 4

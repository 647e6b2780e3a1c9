"""The backbone and the benchmark that docs/adding.md adds, with code taken from that page."""

import json
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from tests.docs import additions

BACKBONE = "qwen-2.5-7B"
# Several commands in one process, which loads everything once.
_COMMANDS = """
import json, sys
from cli import main
for words in json.loads(sys.argv[1]):
    main.app(words, standalone_mode=False)
"""


def python(folder: Path, *words: str) -> None:
    given = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, *words]
    ended = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr


def commands(preset: str, *commands: str, **settings: str) -> list[list[str]]:
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return [[*command.split(), "--preset", preset, *overrides] for command in commands]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a method on the backbone and one on the benchmark, on a few questions, in one process."""
    suite = additions.suite(tmp_path_factory.mktemp("adding") / "suite", "A backbone", "A benchmark")
    python(suite, "-c", additions.programs("A benchmark")[0])
    few = {"limit": "{test: 6}", "benchmarks": "[gsm_hard]", "methods": "[single]", "backbones": f"[{BACKBONE}]"}
    days = {"limit": "{test: 10}", "benchmarks": "[weekdays]", "methods": "[cot]", "backbones": "[qwen-2.5-14B]"}
    single = f"cell --method single --benchmark gsm_hard --backbone {BACKBONE}"
    cot = "cell --method cot --benchmark weekdays --backbone qwen-2.5-14B"
    words = [
        *commands("smoke", "data --benchmark gsm_hard", single, "report main_table", **few),
        *commands("embedded", "data --benchmark weekdays", cot, "report main_table", extra="my/methods.yaml", **days),
    ]
    python(suite, "-c", _COMMANDS, json.dumps(words))
    python(suite, "-c", additions.programs("As a library")[0])
    return suite


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

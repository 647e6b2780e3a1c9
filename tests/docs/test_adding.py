"""The backbone and the benchmark that docs/adding.md adds, with code taken from that page."""

import json
import sys
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from tests.command import program
from tests.docs import additions

BACKBONE = "qwen-2.5-7B"
# Several commands in one process, which loads everything once.
_COMMANDS = """
import json, sys
from cli import main
for words in json.loads(sys.argv[1]):
    main.app(words, standalone_mode=False)
"""


def commands(preset: str, *commands: str, **settings: str) -> list[list[str]]:
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return [[*command.split(), "--preset", preset, *overrides] for command in commands]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, graphs: Path) -> Path:
    """Run a method on the backbone and one on the benchmark, on a few questions, in one process."""
    suite = additions.suite(tmp_path_factory.mktemp("adding") / "suite", "A backbone", "A benchmark")
    program(sys.executable, "-c", additions.programs("A benchmark")[0], folder=suite)
    few = {"limit": "{test: 6}", "benchmarks": "[gsm_hard]", "methods": "[single]", "backbones": f"[{BACKBONE}]"}
    days = {"limit": "{test: 10}", "benchmarks": "[weekdays]", "methods": "[cot]", "backbones": "[qwen-2.5-14B]"}
    single = f"cell --method single --benchmark gsm_hard --backbone {BACKBONE}"
    cot = "cell --method cot --benchmark weekdays --backbone qwen-2.5-14B"
    words = [
        *commands("smoke", "data --benchmark gsm_hard", single, "report main_table", **few),
        *commands("embedded", "data --benchmark weekdays", cot, "report main_table", extra="my/methods.yaml", **days),
    ]
    for start in (_COMMANDS, additions.programs("As a library")[0]):
        environment = {"PYTHONPATH": str(suite), "GMR_CACHE_DIR": str(graphs)}
        program(sys.executable, "-c", start, json.dumps(words), folder=suite, **environment)
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
    assert pq.read_metadata(ran / "results/smoke/cells/gmr/gsm_hard/pool/seed0/items.parquet").num_rows == 4

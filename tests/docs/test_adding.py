"""A backbone and a benchmark from outside of the suite: what the documentation adds, taken from its pages."""

from __future__ import annotations

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
from workflow import cli, scripts
for words in json.loads(sys.argv[1]):
    app = scripts.scripts if words[0] in ("data", "world") else cli.app
    app(words, standalone_mode=False)
"""


def python(folder: Path, *words: str) -> str:
    """What a program printed in a suite.

    Raises:
        AssertionError: It failed; with what it said.
    """
    ended = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "GMR_DATA_DIR": "my-data"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def gmr(folder: Path, preset: str, commands: list[str], **settings: str) -> str:
    """What commands of the suite printed that were given one after the other, all under the same settings."""
    overrides = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    given = [[*command.split(), "--preset", preset, *overrides] for command in commands]
    return python(folder, "-c", _COMMANDS, json.dumps(given))


def test_a_backbone_is_an_entry_and_what_is_assumed_of_it(tmp_path: Path) -> None:
    folder = additions.suite(tmp_path / "suite")
    (path, entry), *others = additions.fragments("A backbone")
    additions.add(folder, path, entry)
    few = {"benchmarks": "[gsm_hard]", "methods": "[single]", "limit": "{test: 6}"}
    with pytest.raises(AssertionError, match=f"no accuracy to calibrate '{BACKBONE}' on 'gsm_hard'"):
        gmr(folder, "smoke", ["data --benchmark gsm_hard", "world"], **few)
    for path, entry in others:
        additions.add(folder, path, entry)
    cell = f"cell --method single --benchmark gsm_hard --backbone {BACKBONE}"
    gmr(folder, "smoke", ["world", cell, "report main_table"], backbones=f"[{BACKBONE}]", **few)
    facts = orjson.loads((folder / f"results/smoke/cells/single/gsm_hard/{BACKBONE}/seed0/run.json").read_bytes())
    assert list(facts["backbones"]) == [BACKBONE]
    rows = [line for line in (folder / "reports/smoke/main_table.md").read_text().splitlines() if BACKBONE in line]
    assert "Single LLM" in rows[0]


@pytest.fixture(scope="module")
def weekdays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite with the benchmark in it, and its questions."""
    folder = additions.suite(tmp_path_factory.mktemp("weekdays") / "suite")
    additions.add_benchmark(folder)
    python(folder, "-c", additions.programs("A benchmark")[0])
    return folder


def test_the_checksums_on_the_page_are_those_its_program_prints(weekdays: Path) -> None:
    printed = python(weekdays, "-c", additions.programs("A benchmark")[2])
    found = dict(line.split() for line in printed.splitlines())
    entry = dict(additions.fragments("A benchmark"))["config/benchmarks.yaml"]["weekdays"]
    expected = entry["expected"]
    assert found == {"count": str(expected["count"]), "checksum": expected["checksum"], **expected["splits"]}


def test_a_benchmark_goes_from_its_file_to_its_column(weekdays: Path) -> None:
    assert "Weekdays" in python(weekdays, "-m", "workflow", "validate", "--data", "real", "--benchmark", "weekdays")
    cell = "cell --method cot --benchmark weekdays --backbone qwen-2.5-14B"
    gmr(
        weekdays,
        "weekdays",
        ["data --benchmark weekdays", "world", cell, "report main_table"],
        methods="[cot]",
        backbones="[qwen-2.5-14B]",
        limit="{test: 10}",
    )
    items = pq.read_table(weekdays / "results/weekdays/cells/cot/weekdays/qwen-2.5-14B/seed0/items.parquet")
    right = sum(row["correct"] for row in items.to_pylist())
    assert items.num_rows == 10
    table = (weekdays / "reports/weekdays/main_table.md").read_text()
    assert "Weekdays Meas." in table
    row = next(line for line in table.splitlines() if line.startswith("| CoT"))
    assert f"{10 * right:.2f}" in row

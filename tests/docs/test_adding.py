"""A copy of the suite with all additions of docs/adding.md, and what runs in it, with code taken from that page."""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from harness.files import ROOT
from tests.command import program
from tests.planning import copied_suite

_FRAGMENT = re.compile(r"```yaml\n# (\S+/\S+)\n(.*?)```", re.DOTALL)


def section(name: str) -> str:
    text = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
    return text.split(f"\n## {name}\n")[1].split("\n## ")[0]


def programs(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", section(name), re.DOTALL)


def fragments(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(path, yaml.safe_load(text)) for path, text in _FRAGMENT.findall(section(name))]


def add(folder: Path, path: str, new: Mapping[str, Any]) -> None:
    """Merge a YAML fragment into a file of entries, which is created if missing."""
    file = folder / path
    old = yaml.safe_load(file.read_text()) if file.exists() else {}
    extended = {key: {**old.get(key, {}), **value} for key, value in new.items()}
    file.write_text(yaml.safe_dump({**old, **extended}, sort_keys=False))


def suite(folder: Path, *sections: str) -> Path:
    """Copy the suite, and add two methods and the additions of the page's sections."""
    copied_suite(folder)
    (folder / "my").mkdir()
    # What `gmr new method` makes, and the preset that the page on models of one's own shows.
    for name, template in (("my_router", "logistic_router.py"), ("drawn", "random_router.py")):
        shutil.copy(ROOT / "baselines" / "cheap" / template, folder / "my" / f"{name}.py")
        entry = {"module": name, "title": name, "rows": "pool", "trained": name == "my_router"}
        add(folder, "my/methods.yaml", {name: entry})
    page = (ROOT / "docs" / "own-models.md").read_text(encoding="utf-8")
    (folder / "config" / "presets" / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    for path, new in (one for name in sections for one in fragments(name)):
        add(folder, path, new)
    (folder / "my" / "weekdays.py").write_text(programs("A benchmark")[1])
    return folder


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
    """Run a method on the backbone, one on the benchmark, and the page's program, in one process."""
    folder = suite(tmp_path_factory.mktemp("adding") / "suite", "A backbone", "A benchmark")
    few = {"limit": "{test: 6}", "benchmarks": "[gsm_hard]", "methods": "[single]", "backbones": f"[{BACKBONE}]"}
    days = {"limit": "{test: 10}", "benchmarks": "[weekdays]", "methods": "[cot]", "backbones": "[qwen-2.5-14B]"}
    single = f"cell --method single --benchmark gsm_hard --backbone {BACKBONE}"
    cot = "cell --method cot --benchmark weekdays --backbone qwen-2.5-14B"
    words = [
        *commands("smoke", "data --benchmark gsm_hard", single, "report main_table", **few),
        *commands("embedded", "data --benchmark weekdays", cot, "report main_table", extra="my/methods.yaml", **days),
    ]
    start = "\n".join([programs("A benchmark")[0], _COMMANDS, programs("As a library")[0]])
    environment = {"PYTHONPATH": str(folder), "GMR_CACHE_DIR": str(graphs)}
    program(sys.executable, "-c", start, json.dumps(words), folder=folder, **environment)
    return folder


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

"""Methods from outside of the suite: the ones that the documentation builds, taken from its page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from harness.files import ROOT
from tests.docs import additions

PAGE = additions.section("A method")
MODULES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ENTRIES = dict(zip(("majority", "second_opinion", "best_backbone"), MODULES, strict=True))
ROWS = {"majority": "qwen-2.5-14B", "second_opinion": "qwen-2.5-14B", "best_backbone": "pool"}
FEW = ["--set", "benchmarks=[gsm_hard]", "--set", "limit={train: 4, test: 6}"]


def entry(name: str) -> dict[str, object]:
    """The entry of the page, with the module where the test puts it: outside of every package."""
    lines = re.search(rf"^    {name}:\n(?:      .*\n)+", PAGE, re.MULTILINE)
    assert lines is not None
    found: dict[str, dict[str, object]] = yaml.safe_load(lines.group())
    assert found[name]["module"] == f"baselines.{name}"
    return {**found[name], "module": name}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the suite with more entries, and the modules beside it."""
    folder = tmp_path_factory.mktemp("suite")
    for room in ("harness", "baselines", "gmr", "analysis", "workflow", "config"):
        shutil.copytree(ROOT / room, folder / "suite" / room, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "suite" / "config" / "methods.yaml"
    path.write_text(f"{path.read_text()}\n{yaml.safe_dump({name: entry(name) for name in ENTRIES})}")
    (folder / "run" / "results").mkdir(parents=True)
    (folder / "own").mkdir()
    for name, source in ENTRIES.items():
        (folder / "own" / f"{name}.py").write_text(source)
    for words in (["data", "--benchmark", "gsm_hard"], ["world"]):
        run(folder, [*words, "--preset", "smoke", *FEW])
    return folder


def run(folder: Path, words: list[str]) -> None:
    path = os.pathsep.join([str(folder / "suite"), str(folder / "own")])
    ended = subprocess.run(
        [sys.executable, "-m", "workflow" if words[0] == "cell" else "workflow.scripts", *words],
        cwd=folder / "run",
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("name", ENTRIES)
def test_a_method_from_outside_is_one_file_and_one_entry(checkout: Path, name: str) -> None:
    where = ["--benchmark", "gsm_hard", "--backbone", ROWS[name]]
    run(checkout, ["cell", "--preset", "smoke", "--method", name, *where, *FEW, "--set", f"methods=[{name}]"])
    cell = checkout / "run" / "results" / "smoke" / "cells" / name / "gsm_hard" / ROWS[name] / "seed0"
    facts = orjson.loads((cell / "run.json").read_bytes())
    calls = pq.read_table(cell / "calls.parquet").to_pylist()
    assert (facts["method"], facts["simulated"]) == (name, True)
    items = pq.read_table(cell / "items.parquet").to_pylist()
    assert len(items) == 6
    if name == "majority":
        assert [item["utility"] for item in items] == [None] * 6
        assert [call["slot"] for call in calls] == [0, 1, 2] * 6
    elif name == "second_opinion":
        assert [(call["step"], call["role"]) for call in calls] == [(1, ""), (2, "Commonsense/Critic"), (3, "")] * 6
    else:
        log = pq.read_table(cell / "training.parquet").to_pylist()
        accuracy = [row["value"] for row in log if row["measure"] == "accuracy"]
        best = list(facts["backbones"])[accuracy.index(max(accuracy))]
        assert {call["backbone"] for call in calls} == {best}
        assert [item["utility"] for item in items] == [float(item["correct"]) for item in items]


@pytest.mark.parametrize("name", ["majority", "second_opinion"])
def test_a_method_that_only_answers_is_short(name: str) -> None:
    assert len([line for line in ENTRIES[name].splitlines() if line.strip()]) < 40

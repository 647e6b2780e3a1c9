"""Which code a report depends on."""

from __future__ import annotations

import json
import subprocess
import sys

from analysis.code import closure, code_of_report
from analysis.registry import artefacts
from harness.files import ROOT

CLAIMS = ["analysis.claims.report"]
LOADED = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
own = [module for name, module in sys.modules.items() if name.split(".")[0] in ("analysis", "harness")]
print(json.dumps([module.__file__ for module in own if module.__file__]))
"""


def test_all_that_is_loaded_is_found() -> None:
    modules = [
        *(one.module for one in artefacts().values()),
        *CLAIMS,
        "analysis.learning.files",
        "analysis.search_history",
    ]
    command = [sys.executable, "-c", LOADED, *modules]
    loaded = set(json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout))
    assert len(loaded) > 50
    assert loaded <= {str(path) for path in closure(modules)}


def test_an_import_inside_of_a_function_counts() -> None:
    assert ROOT / "harness" / "benchmarks" / "leaks.py" in closure(["analysis.tables.leak_report"])


def test_the_claims_depend_on_no_artefact() -> None:
    folders = [ROOT / "analysis" / name for name in ("tables", "figures")]
    assert [path for path in closure(CLAIMS) if path.parent in folders] == []


def test_what_is_no_module_of_this_project_is_left_out() -> None:
    assert closure(["numpy", "gmr.router"]) == []


def test_a_file_that_is_read_counts() -> None:
    alone = code_of_report(["analysis.table"])
    assert code_of_report(["analysis.table"], "config/published.yaml") != alone
    assert code_of_report(["analysis.table"]) == alone

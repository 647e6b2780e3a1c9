"""Which code a report depends on."""

from __future__ import annotations

import json
import subprocess
import sys

from harness.files import ROOT
from paper.code import closure, code_of_report
from paper.registry import artefacts

CLAIMS = ["paper.claims.report", "paper.claims.render"]
LOADED = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
own = [module for name, module in sys.modules.items() if name.split(".")[0] in ("paper", "harness")]
print(json.dumps([module.__file__ for module in own if module.__file__]))
"""


def test_all_that_is_loaded_is_found() -> None:
    modules = [*(one.module for one in artefacts().values()), *CLAIMS, "paper.learning.report", "paper.search_history"]
    command = [sys.executable, "-c", LOADED, *modules]
    loaded = set(json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout))
    assert len(loaded) > 50
    assert loaded <= {str(path) for path in closure(modules)}


def test_an_import_inside_of_a_function_counts() -> None:
    # Loaded by render.write only when a table is written.
    assert ROOT / "paper" / "render" / "latex.py" in closure(["paper.render"])
    assert ROOT / "harness" / "benchmarks" / "leaks.py" in closure(["paper.artefacts.leak_report"])


def test_no_artefact_depends_on_another() -> None:
    folder = ROOT / "paper" / "artefacts"
    for one in artefacts().values():
        own = {folder / "__init__.py", ROOT.joinpath(*one.module.split(".")).with_suffix(".py")}
        assert {path for path in closure([one.module]) if path.parent == folder} <= own, one.key
    assert [path for path in closure(CLAIMS) if path.parent == folder] == []


def test_what_is_no_module_of_this_project_is_left_out() -> None:
    assert closure(["numpy", "gmr.router"]) == []


def test_a_file_that_is_read_counts() -> None:
    alone = code_of_report(["paper.render"])
    assert code_of_report(["paper.render"], "paper/claims.yaml") != alone
    assert code_of_report(["paper.render"], "paper/schemas") != alone
    assert code_of_report(["paper.render"]) == alone

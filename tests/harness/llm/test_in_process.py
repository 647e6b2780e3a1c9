"""Backbones simulated in the process of a cell: nothing is loaded that such a cell does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIBRARIES = ["openai", "aiohttp", "httpx2", "tenacity", "torch", "onnxruntime", "scipy", "matplotlib"]
CELL = """
import sys
from cli import main
sys.argv = ["gmr", *{words!r}]
try:
    main.main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(sorted({{*{LIBRARIES!r}}} & {{*sys.modules}}))
"""


def test_a_simulated_cell_loads_no_client_and_nothing_that_learning_or_reports_need(tmp_path: Path) -> None:
    chosen = ["--preset", "smoke", "--set", "benchmarks=[gsm_hard]", "--set", "limit={test: 4}"]
    cell = ["--method", "cot", "--benchmark", "gsm_hard", "--backbone", "qwen-2.5-14B", "--seed", "0"]
    (tmp_path / "results").mkdir()

    def gmr(*words: str) -> str:
        script = CELL.format(words=list(words), LIBRARIES=LIBRARIES)
        run = [sys.executable, "-c", script]
        return subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True, env=None).stdout

    for job in (["data", "--benchmark", "gsm_hard"], ["calibration"]):
        subprocess.run([sys.executable, "-m", "cli.main", *job, *chosen], cwd=tmp_path, check=True)
    assert gmr("cell", *chosen, *cell).splitlines()[-1] == "[]"
    assert list((tmp_path / "results" / "smoke").rglob("run.json"))

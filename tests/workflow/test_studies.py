"""The studies in the DAG: which cells a report on learning is made of."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.files import ROOT

FILES = ["learning.md", "learning.csv", *(f"learning_curves.{kind}" for kind in ("csv", "pdf", "png", "svg"))]


@pytest.mark.parametrize(("preset", "single", "learned"), [("learning", 10, 130), ("learning_baselines", 10, 80)])
def test_a_report_on_learning_is_one_job_over_all_cells(tmp_path: Path, preset: str, single: int, learned: int) -> None:
    for part in ("Snakefile", "workflow", "config", "profiles", "environment.yml"):
        (tmp_path / part).symlink_to(ROOT / part)
    planned = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", *(f"reports/{preset}/{name}" for name in FILES)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert planned.returncode == 0, planned.stderr
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", planned.stdout.split("Job stats:")[1].split("\n\n")[0], re.MULTILINE))
    assert jobs == {
        "data": "2",
        "world": "1",
        "cell": str(single),
        "learned_cell": str(learned),
        "learning": "1",
        "total": str(single + learned + 4),
    }

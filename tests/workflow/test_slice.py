"""The target that a forecast is measured with: every cell behind any artefact, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from analysis import registry
from harness.files import ROOT
from harness.runner import config


def test_it_runs_every_cell_with_the_seeds_of_the_run_and_nothing_else(tmp_path: Path) -> None:
    for name in ("Snakefile", "workflow", "config", "profiles", "environment.yml"):
        (tmp_path / name).symlink_to(ROOT / name)
    words = ["-n", "cells", "--config", "preset=rehearsal", "limit={share: 0.05}", "seeds=[0]"]
    planned = subprocess.run(
        [sys.executable, "-m", "snakemake", *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    table = (planned.stdout + planned.stderr).split("Job stats:")[1].split("\n\n")[0]
    jobs = {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)}
    cells = [cell for cell in registry.cells_of(config.preset("rehearsal")) if cell.seed == 0]
    assert jobs.pop("cell") + jobs.pop("learned_cell") == len(cells) == 131
    assert jobs == {"cells": 1, "data": 5, "world": 1, "total": len(cells) + 7}

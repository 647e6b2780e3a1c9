"""Runs as claims read them, two frames made of right answers and other measures of each question."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.claims.measured import CELL, Run, Seeds, by_row

#: Method, backbone, benchmark, seed.
Cell = tuple[str, str, str, int]
IDENTITY = dict.fromkeys(("run_id", "config_hash", "code", "data_checksum", "backbones"), "")


def run_of(correct: Mapping[Cell, Any], seeds: Seeds | None = None, **measures: Mapping[Cell, Any]) -> Run:
    """Return a run by the answers of each cell, and by further measures; of the seeds that each row has, or others."""
    index = pd.MultiIndex.from_tuples(correct, names=CELL)
    names = [f"{method}/{benchmark}/{backbone}/{seed}" for method, backbone, benchmark, seed in correct]
    cells = pd.DataFrame({**IDENTITY, "cell": names, "simulated": False, "seconds": np.nan}, index)
    columns = {
        cell: {"accuracy": 100.0 * np.array(right)} | {name: values.get(cell, 0.0) for name, values in measures.items()}
        for cell, right in correct.items()
    }
    questions = pd.concat({cell: pd.DataFrame(values) for cell, values in columns.items()}, names=CELL).droplevel(-1)
    if "cost" in measures:
        questions["cost_total"] = questions["cost"]
    had = by_row((cell[:2], cell[-1]) for cell in correct)
    return Run(cells, questions, seeds or Seeds(had, had))

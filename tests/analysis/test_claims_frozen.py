"""Verdicts on frozen data: some cells of preset embedded with 32 test questions, treated as real models.

The cells are from ``snakemake reports/claims.md --config preset=embedded limit='{train: 4, test: 32, epochs: 1}'``,
without seconds. After an intended change, ``python -m tests.analysis.test_claims_frozen`` updates the verdicts.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.finished_cells import FinishedCell
from analysis.paper.claims import measured
from analysis.paper.claims.declaration import CLAIMS
from analysis.paper.claims.judge import VERDICTS, judge
from analysis.paper.claims.measured import Seeds, by_row
from analysis.statistics import Ratio
from tests.analysis.cells import Cell, run_of

FROZEN = Path(__file__).parent / "frozen"
NUMBERS = ["measured", "low", "high", "confidence", "measured_all_calls"]
COLUMNS = ["claim", "part", *NUMBERS, "agrees_with_published", "outcome", "reason", "verdict", "stands"]
ITEMS = ["cost", "cost_total", "depth"]
TRAINING = ["training_steps", "trajectories", "entropy_write", "entropy_retrieval"]
OF_SEEDS = {("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B")}


def verdicts() -> pd.DataFrame:
    """Judge the frames as of real backbones, with seed 0 of every row and all seeds of the three routers."""
    cells, questions = (pd.read_parquet(FROZEN / f"{name}.parquet") for name in ("cells", "questions"))
    every = by_row(((method, backbone), seed) for method, backbone, _, seed in cells.index)
    several = {row: seeds for row, seeds in every.items() if row in OF_SEEDS}
    frames = dict(list(questions.groupby(level=cells.index.names)))
    items = {name: {cell: frame[name].to_numpy() for cell, frame in frames.items()} for name in ITEMS}
    correct = {cell: frame["accuracy"].to_numpy() > 0 for cell, frame in frames.items()}
    run = run_of(correct, Seeds(dict.fromkeys(every, (0,)), several), **items)

    def key_of(cell: FinishedCell) -> Cell:
        return cell.run.method, cell.run.backbone, cell.run.benchmark, cell.run.seed

    def ratios(cell: FinishedCell) -> dict[str, Ratio]:
        columns = frames[key_of(cell)].to_dict("series")
        ones = np.ones(len(cell.items))
        return {name: Ratio(columns[name].to_numpy(), columns.get(f"{name} of", ones), False) for name in names}

    names = [name for name in questions if name not in (*ITEMS, "accuracy") and not name.endswith(" of")]
    with pytest.MonkeyPatch.context() as patch:
        # What else is read is in files of a cell.
        patch.setattr(measured, "_RATIOS", {ratios: names})
        patch.setattr(measured, "of_training", lambda cell: cells[TRAINING].loc[key_of(cell)].to_dict())
        judged = judge(CLAIMS, run)
    return pd.DataFrame([part for parts in judged for part in parts]).reindex(columns=COLUMNS)


def test_verdicts_are_those_that_are_recorded() -> None:
    recorded, now = pd.read_csv(FROZEN / "verdicts.csv", keep_default_na=False), verdicts()
    for column in NUMBERS:
        numbers = pd.to_numeric(recorded[column], errors="coerce")
        assert now[column].astype(float).tolist() == pytest.approx(numbers.tolist(), nan_ok=True, rel=1e-9, abs=1e-9)
    texts = now.drop(columns=NUMBERS).astype(object).map(lambda value: "" if pd.isna(value) else str(value))
    assert texts.to_dict("records") == recorded.drop(columns=NUMBERS).to_dict("records")
    # Every verdict is among them.
    assert set(now["verdict"]) == set(VERDICTS.values())


if __name__ == "__main__":
    verdicts().to_csv(FROZEN / "verdicts.csv", index=False)

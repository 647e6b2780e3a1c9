"""The judge on frozen frames: some cells of preset embedded at 32 test questions, as if real models had answered.

Cells of ``snakemake reports/claims.md --config preset=embedded limit='{train: 4, test: 32, epochs: 1}'``, without
seconds. After a change that is meant, ``python -m tests.analysis.test_claims_frozen`` writes the verdicts again.
"""

from pathlib import Path

import pandas as pd
import pytest

from analysis.claims.judge import VERDICTS, judge
from analysis.claims.measured import Run, Seeds, by_row
from analysis.claims.statements import CLAIMS

FROZEN = Path(__file__).parent / "frozen"
NUMBERS = ["measured", "low", "high", "confidence", "measured_all_calls"]
COLUMNS = ["claim", "part", *NUMBERS, "agrees_with_published", "outcome", "reason", "verdict", "stands"]
OF_SEEDS = {("gmr", "pool"), ("masrouter", "pool"), ("puppeteer", "qwen-2.5-32B")}


def verdicts() -> pd.DataFrame:
    """Judge the frames as of real backbones, with seed 0 of every row and all seeds of the three routers."""
    cells, questions = (pd.read_parquet(FROZEN / f"{name}.parquet") for name in ("cells", "questions"))
    every = by_row(((method, backbone), seed) for method, backbone, _, seed in cells.index)
    several = {row: seeds for row, seeds in every.items() if row in OF_SEEDS}
    run = Run(cells.assign(simulated=False), questions, Seeds(dict.fromkeys(every, (0,)), several))
    return pd.DataFrame([part for parts in judge(CLAIMS, run) for part in parts]).reindex(columns=COLUMNS)


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

"""FLOPs and seconds of a question (paper, appendix on cost calculation; D-REPORT-3)."""

from __future__ import annotations

import math

import pandas as pd
from pydantic import PositiveFloat, PositiveInt

from analysis.finished_cells import FinishedCell, read_json, read_table
from harness.errors import UserError
from harness.files import Declaration
from harness.llm.backbones import forward_flops
from harness.runner import layout

PETA = 1e15
_TOKENS = ["prompt_tokens", "completion_tokens"]


class Timing(Declaration, extra="ignore"):
    """Content of ``timing.json`` of a cell that reports need."""

    test_s: PositiveFloat | None = None  # of all test questions; None unless one start asked all their calls
    in_flight: PositiveInt | None = None  # questions at the same time


def timing(cell: FinishedCell) -> Timing:
    """Load the timing of a cell, empty if it is simulated or has none."""
    path = cell.folder / layout.TIMING
    if cell.run.simulated or not path.exists():
        return Timing()
    known: Timing = read_json(path, Timing, "delete it")
    return known if known.test_s is not None else Timing()


def seconds(cell: FinishedCell) -> float:
    """Return the seconds of all test questions over their number, NaN if unknown."""
    total = timing(cell).test_s
    return math.nan if total is None else total / len(cell.items)


def pflops(cell: FinishedCell) -> pd.Series:
    """Return PFLOPs of each question by id, 0 where no model was asked; raises UserError for an unknown backbone."""
    path = cell.folder / "calls.parquet"
    calls = read_table(path, ("item_id", "backbone", *_TOKENS))
    # Sizes as the cell recorded them; the configuration may have changed since.
    sizes = {key: backbone.get("parameters_b") for key, backbone in cell.run.backbones.items()}
    if unknown := sorted(key for key in set(calls["backbone"]) if sizes.get(key) is None):
        raise UserError(f"{path}: calls of backbone {unknown[0]!r}, whose size run.json lacks; run the cell again")
    tokens = calls["prompt_tokens"] + calls["completion_tokens"]
    flops = forward_flops(calls["backbone"].map(sizes), tokens)
    sums = flops.astype(float).groupby(calls["item_id"]).sum()
    return sums.reindex(cell.items["item_id"], fill_value=0) / PETA

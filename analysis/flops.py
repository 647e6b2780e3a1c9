"""Floating-point operations of test questions, from the tokens of their calls (paper, appendix on cost calculation).

Two operations a parameter and token, prompt and completion alike, over all calls of a question, the final one included;
the attention term, which grows with the length of a sequence, is left out as in the paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.measures import Measurement
from analysis.ratios import estimates, mean_of
from analysis.results import Cell
from analysis.statistics import Estimate
from analysis.traces import read_table
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load as load_backbones

if TYPE_CHECKING:
    import pandas as pd

PETA = 1e15
BACKBONES = ROOT / "config" / "backbones.yaml"
_TOKENS = ("prompt_tokens", "completion_tokens")


def pflops(cell: Cell) -> NDArray[np.float64]:
    """PFLOPs of each test question, shape (n,), in the order of the cell's items; 0 where no model was asked.

    Raises:
        UserError: The table of calls cannot be read, does not add up to the tokens of the items, or names a backbone
            that ``config/backbones.yaml`` does not have.
    """
    path = cell.folder / "calls.parquet"
    calls = read_table(path, ("item_id", "backbone", *_TOKENS))
    _check_tokens(calls, cell, path)
    known = load_backbones(BACKBONES)
    strangers = sorted(set(calls["backbone"]) - set(known))
    if strangers:
        raise UserError(
            f"{path}: calls of backbone {strangers[0]!r}, whose size config/backbones.yaml does not have; restore its "
            "entry, or run the cell again"
        )
    calls["flops"] = [known[one.backbone].flops(one.prompt_tokens, one.completion_tokens) for one in calls.itertuples()]
    return _by_item(calls, "flops", cell) / PETA


def per_query(measurement: Measurement) -> Estimate:
    """Mean PFLOPs of a test question, with the interval of a bootstrap over questions, and over several seeds.

    Raises:
        UserError: As :func:`pflops`.
    """
    return estimates([{"pflops": mean_of(pflops(cell).tolist())} for cell in measurement.cells])["pflops"]


def _check_tokens(calls: pd.DataFrame, cell: Cell, path: Path) -> None:
    """FLOPs of calls that are not those of the items would be those of another run."""
    known = set(cell.items.item_id)
    same = all(np.array_equal(_by_item(calls, name, cell), getattr(cell.items, name)) for name in _TOKENS)
    if not same or not known >= set(calls["item_id"]):
        raise UserError(f"{path}: its calls are not those that items.parquet counts; run the cell again")


def _by_item(calls: pd.DataFrame, column: str, cell: Cell) -> NDArray[np.float64]:
    sums = calls.groupby("item_id")[column].sum()
    return sums.reindex(list(cell.items.item_id), fill_value=0).to_numpy(dtype=float)

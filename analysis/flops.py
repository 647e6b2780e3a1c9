"""Floating-point operations of test questions, from the tokens of their calls (paper, appendix on cost calculation).

Two operations a parameter and token, prompt and completion alike, over all calls of a question, the final one included;
the attention term, which grows with the length of a sequence, is left out as in the paper.
"""

from __future__ import annotations

import pandas as pd

from analysis.results import Cell, read_table
from harness.errors import UserError
from harness.files import ROOT
from harness.llm.backbones import load as load_backbones

PETA = 1e15
BACKBONES = ROOT / "config" / "backbones.yaml"
_TOKENS = ["prompt_tokens", "completion_tokens"]


def pflops(cell: Cell) -> pd.Series:
    """PFLOPs of each test question, in the order of the cell's items; 0 where no model was asked.

    Raises:
        UserError: The table of calls cannot be read, or names a backbone that ``config/backbones.yaml`` lacks.
    """
    path = cell.folder / "calls.parquet"
    calls, known = read_table(path, ("item_id", "backbone", *_TOKENS)), load_backbones(BACKBONES)
    strangers = sorted(set(calls["backbone"]) - set(known))
    if strangers:
        raise UserError(
            f"{path}: calls of backbone {strangers[0]!r}, whose size config/backbones.yaml does not have; restore its "
            "entry, or run the cell again"
        )
    flops = [known[one.backbone].flops(one.prompt_tokens, one.completion_tokens) for one in calls.itertuples()]
    sums = pd.Series(flops, dtype=float).groupby(calls["item_id"]).sum()
    return sums.reindex(cell.items["item_id"], fill_value=0) / PETA

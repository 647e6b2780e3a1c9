"""Ledger of a run: calls used by its methods, distinct calls, and calls that several cells share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["item_id", "key", "prompt_tokens", "completion_tokens", "cost", "error"]


def ledger(cells: Sequence[Path]) -> pd.DataFrame:
    """Return a row for each method, for its training (``NAME training``), and for ``all``, over finished cells.

    Columns: ``uses`` (calls as charged), ``calls`` (distinct within a cell; one that training and test share counts for
    the test), ``alike`` (asked by another cell, too), ``failed``, ``prompt_tokens``, ``completion_tokens`` and ``cost``
    summed over uses. Raises UserError if no cell is finished.
    """
    import pandas as pd

    frames = [
        pd.read_parquet(cell / file, columns=_COLUMNS).assign(cell=str(cell), method=cell.parents[2].name + phase)
        for cell in cells
        if (cell / "run.json").exists()
        for file, phase in (("calls.parquet", ""), ("training_calls.parquet", " training"))
        if (cell / file).exists()
    ]
    if not frames:
        raise UserError("no cell of this run is finished; run `snakemake --cores all` on one of its tables first")
    uses = pd.concat(frames, ignore_index=True)
    calls = uses.drop_duplicates(["cell", "key"])
    shared = calls[calls.duplicated("key", keep=False)]
    rows = uses.groupby("method", sort=False).agg(
        uses=("key", "size"),
        failed=("error", "count"),
        prompt_tokens=("prompt_tokens", "sum"),
        completion_tokens=("completion_tokens", "sum"),
        cost=("cost", "sum"),
    )
    rows.insert(1, "calls", calls.groupby("method").size().reindex(rows.index, fill_value=0))
    rows.insert(2, "alike", shared.groupby("method").size().reindex(rows.index, fill_value=0))
    rows.loc["all"] = rows.sum()
    whole = rows.columns.drop("cost")
    return rows.astype(dict.fromkeys(whole, "int64"))

"""The ledger of a run: what its methods used, what was really asked, and what several cells asked alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["item_id", "key", "prompt_tokens", "completion_tokens", "cost", "error"]


def ledger(cells: Sequence[Path]) -> pd.DataFrame:
    """One row a method, one for its training where it learns, and one for all, over those cells that are finished.

    Columns by method, ``NAME training`` for what it used to learn: ``uses`` (calls as charged), ``calls`` (distinct
    within a cell; one that training and test share counts for the test), ``alike`` (asked by another cell of the run
    too), ``failed``, ``prompt_tokens``, ``completion_tokens`` and ``cost`` summed over uses. Raises UserError where no
    cell is finished.
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
    asked = uses.drop_duplicates(["cell", "key"])
    alike = asked[asked.duplicated("key", keep=False)]
    rows = uses.groupby("method", sort=False).agg(
        uses=("key", "size"),
        failed=("error", "count"),
        prompt_tokens=("prompt_tokens", "sum"),
        completion_tokens=("completion_tokens", "sum"),
        cost=("cost", "sum"),
    )
    rows.insert(1, "calls", asked.groupby("method").size().reindex(rows.index, fill_value=0))
    rows.insert(2, "alike", alike.groupby("method").size().reindex(rows.index, fill_value=0))
    rows.loc["all"] = rows.sum()
    whole = rows.columns.drop("cost")
    return rows.astype(dict.fromkeys(whole, "int64"))

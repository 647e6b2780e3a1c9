"""FLOPs from the tokens of calls (paper, appendix on cost calculation), seconds from timing jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from analysis.finished_cells import FinishedCell, read_json, read_table, short
from analysis.frames import Key
from harness.errors import UserError
from harness.files import Declaration, Text
from harness.llm.backbones import forward_flops

FILE = "timing.json"
PETA = 1e15
_TOKENS = ["prompt_tokens", "completion_tokens"]


class Timing(Declaration, extra="ignore"):
    """Content of ``timing.json`` that reports need."""

    version: Literal[1] = Field(alias="schema")
    method: Text
    benchmark: Text
    backbone: Text
    seed: int
    n: PositiveInt
    seconds: PositiveFloat  # of all n questions together
    concurrency: PositiveInt  # questions at the same time
    calls: NonNegativeInt
    failed_calls: NonNegativeInt
    prompt_tokens: NonNegativeInt
    completion_tokens: NonNegativeInt
    cell: Mapping[str, Any]  # the cell whose method was timed
    host: Mapping[str, Any]  # where the job ran; not where the backbones were served

    @property
    def per_query(self) -> float:
        """Return seconds of the whole pass over the number of questions, as the paper has it (D-REPORT-3)."""
        return self.seconds / self.n

    @property
    def machine(self) -> str:
        """Return where the method ran."""
        return f"{self.host['processors']} processors, {self.host['platform']}"


def read_timings(folders: Iterable[Path], cells: Sequence[FinishedCell]) -> dict[Key, Timing]:
    """Load the timings of cells; UserError if one is unreadable or of another run, or two are not comparable."""
    run_ids = {cell.run.cell: cell.run.run_id for cell in cells}
    timings: dict[Key, Timing] = {}
    for folder in sorted(folders):
        timing: Timing = read_json(folder / FILE, Timing, "run the timing job again")
        if run_ids.get(f"{timing.method}/{timing.benchmark}/{timing.backbone}/{timing.seed}") != timing.cell["run_id"]:
            raise UserError(
                f"{folder}: the timing of run {short(timing.cell['run_id'])}, which is no cell shown with it; "
                "time the cell again"
            )
        first = next(iter(timings.values()), timing)
        if timing.concurrency != first.concurrency:
            raise UserError(f"{folder}: timed with fewer or more questions at once than the others; time it again")
        timings[timing.method, timing.backbone, timing.benchmark] = timing
    return timings


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

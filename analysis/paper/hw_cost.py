"""FLOPs and seconds of a question (paper, Cost Calculation for Open-Weight Backbones; D-REPORT-3)."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from analysis.exhibit import NOT_RUN, Entry, entries
from analysis.finished_cells import FinishedCell, read_table, timing
from analysis.frames import IDENTITY, KEY, mean_with_interval
from analysis.registry import Source
from analysis.table import Table, format_series, interval_of, results_table, row_labels, side_by_side
from harness.errors import UserError
from harness.llm.backbones import forward_flops

PETA = 1e15
_TOKENS = ["prompt_tokens", "completion_tokens"]


def build(source: Source) -> Table:
    """Return the published rows, then the others; two groups of columns per benchmark."""
    results = source.results()
    printed = results.printed("hw_cost")
    known = dict.fromkeys([*printed.index.droplevel("benchmark"), *results.ran.index])
    rows = [row for row in known if row in results.rows_to_show.index]
    order = dict.fromkeys([*printed.index.unique("benchmark"), *results.benchmarks])
    titles = {key: results.benchmarks[key] for key in order if key in results.benchmarks}
    index = pd.MultiIndex.from_tuples([(*row, key) for row in rows for key in titles], names=KEY)
    flops = results.per_row(lambda cells: mean_with_interval(cells, "pflops", pflops))
    frame = pd.DataFrame({"benchmark_title": [titles[key] for *_, key in index]}, index).join(
        [printed.add_prefix("published_"), results.measured[["n", *IDENTITY]], flops, results.per_row(_seconds)]
    )
    for name in ("pflops", "seconds"):
        frame[f"{name}_ratio"] = results.compared(frame[name] / frame[f"published_{name}"])
    is_timed = bool(frame["seconds"].notna().any())
    groups: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for key, title in titles.items():
        part, n = frame.xs(key, level="benchmark"), results.questions(key)
        flops_ratio, time_ratio = (format_series(part[f"{name}_ratio"], "×{:.2f}") for name in ("pflops", "seconds"))
        below = interval_of(part, "pflops", "{:.3f}")
        groups[f"{title}, PFLOPs", n] = side_by_side(part, "pflops", "{:.3f}", beside=flops_ratio, below=below)
        time = {"Publ.": entries(part["published_seconds"], "{:.1f}")}
        if is_timed:
            text = format_series(part["seconds"], "{:.2f}").mask(part["n"].isna(), NOT_RUN)
            time["Meas."] = entries(text, beside=time_ratio)
        # Without a measured time the column has no n.
        groups[f"{title}, seconds", n if is_timed else ""] = time
    labels = row_labels(results.rows.loc[rows].assign(section="rows"), "section", "method_title", "backbone_title")
    return results_table(results, "hw-cost", source.caption, labels, groups, source.legend, frame)


def seconds(cell: FinishedCell) -> float:
    """Return seconds per test question; NaN if unknown."""
    total = timing(cell.folder, cell.run).test_s
    return math.nan if total is None else total / len(cell.items)


def pflops(cell: FinishedCell) -> pd.Series:
    """Return PFLOPs of each question by id, 0 without a call. Raises UserError for an unknown backbone."""
    path = cell.folder / "calls.parquet"
    calls = read_table(path, ("item_id", "backbone", *_TOKENS))
    # Sizes from run.json: the configuration may have changed since.
    sizes = {key: backbone.get("parameters_b") for key, backbone in cell.run.backbones.items()}
    if unknown := sorted(key for key in set(calls["backbone"]) if sizes.get(key) is None):
        raise UserError(f"{path}: calls of backbone {unknown[0]!r}, whose size run.json lacks; run the cell again")
    tokens = calls["prompt_tokens"] + calls["completion_tokens"]
    flops = forward_flops(calls["backbone"].map(sizes), tokens)
    sums = flops.astype(float).groupby(calls["item_id"]).sum()
    return sums.reindex(cell.items["item_id"], fill_value=0) / PETA


def _seconds(cells: Sequence[FinishedCell]) -> dict[str, Any]:
    """Return mean seconds of a question over seeds, NaN if any lacks them, and the questions in flight."""
    times = [timing(cell.folder, cell.run) for cell in cells]
    known = [time.in_flight for time in times if time.test_s is not None and time.in_flight is not None]
    return {"seconds": fmean(map(seconds, cells)), "in_flight": min(known, default=math.nan)}

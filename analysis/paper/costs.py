"""Calls, tokens and cost of a question for every method, beside published costs."""

from collections.abc import Sequence
from math import nan
from statistics import fmean

import pandas as pd
from pyarrow.parquet import read_schema

from analysis.exhibit import FAR, NOT_RUN, Entry, format_cost
from analysis.finished_cells import FinishedCell
from analysis.frames import UNIT, with_costs
from analysis.registry import Source
from analysis.table import Table, all_calls, by_benchmark, costs, entries, format_series, results_table, row_labels
from harness.runner.layout import POOL

_WITH_CACHE = "With cache"
_CACHE = (
    f"{_WITH_CACHE}: all calls, with prompt tokens that a server had in its cache at the price `cached` of its model."
)
_PER_QUESTION = ["calls", "prompt_tokens", "completion_tokens"]


def build(source: Source) -> Table:
    """Return the rows that were run: means over test questions and seeds."""
    results = source.results()
    frame = with_costs(results.frame[results.frame["was_run"]], results).join(results.per_row(_calls))
    frame["cost_of_right"] = frame["cost_total"] / (frame["n"] * frame["fraction"]).where(frame["fraction"] > 0)
    frame[_PER_QUESTION] = frame[_PER_QUESTION].div(frame["n"], axis=0)
    if frame["saved"].isna().all():
        frame = frame.drop(columns="saved")
    else:
        frame["cost_with_cache"] = frame["cost_per_query_all_calls"] - frame.pop("saved") / frame["n"]
    groups = {(title, n): _group(rows) for _, title, n, rows in by_benchmark(results, frame)}
    legend = [*source.legend, *([_CACHE] if "cost_with_cache" in frame else [])]
    return results_table(results, "costs", source.caption, row_labels(results.ran), groups, legend, frame)


def _calls(cells: Sequence[FinishedCell]) -> dict[str, float]:
    """Return percentages of calls (to the dearest model, copies within a question), and what a cache saved."""
    calls = [cell.rows("calls", ["key", "backbone"]) for cell in cells]
    prices = {key: backbone.get("prices", [0])[-1] for key, backbone in cells[0].run.backbones.items()}
    dearest = fmean((table["backbone"] == max(prices, key=lambda key: prices[key])).mean() for table in calls)
    copies = round(100 * fmean(table.duplicated().mean() for table in calls), 2)
    return {"copies": copies, "dearest": 100 * dearest, "saved": fmean(map(_saved, cells))}


def _saved(cell: FinishedCell) -> float:
    """Return the full price of the prompt tokens in servers' caches less their own; NaN if either is unknown."""
    backbones = cell.run.backbones.items()
    rates = {key: each["prices"][0] - each["price_cached"] for key, each in backbones if "price_cached" in each}
    if not rates or "cached_tokens" not in read_schema(cell.folder / "calls.parquet").names:
        return nan
    calls = cell.rows("calls", ["backbone", "cached_tokens"])
    return float((calls["cached_tokens"] * calls["backbone"].map(rates)).sum()) / 1e6


def _group(rows: pd.DataFrame) -> dict[str, list[Entry]]:
    tokens = format_series(rows["prompt_tokens"], "{:.0f} + ") + format_series(rows["completion_tokens"], "{:.0f}")
    return {
        "Calls": entries(rows["calls"], "{:.1f}", NOT_RUN, below=format_series(rows["copies"], "{:.0f}% copies")),
        "Tokens": entries(tokens, missing=NOT_RUN),
        **costs(rows, FAR),
        **all_calls(rows),
        **({_WITH_CACHE: entries(UNIT * rows["cost_with_cache"], format_cost)} if "cost_with_cache" in rows else {}),
        "Right answer": entries(UNIT * rows["cost_of_right"], format_cost),
        "Dearest (%)": entries(rows["dearest"].where(rows.index.get_level_values("backbone") == POOL), "{:.0f}"),
    }

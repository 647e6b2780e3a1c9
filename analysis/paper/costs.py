"""Costs: calls, tokens and cost by method, accuracy and cost on one benchmark, FLOPs and time, prices of backbones."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pandas as pd
from pyarrow.parquet import read_schema

from analysis import table
from analysis.exhibit import FAR, NOT_RUN, Entry, format_cost
from analysis.finished_cells import FinishedCell, read_table, short, timing
from analysis.frames import IDENTITY, KEY, UNIT, Results, mean_with_interval, with_costs
from analysis.notes import describe_run
from analysis.table import Table, by_benchmark, entries, format_series, interval_of, results_table, row_labels
from harness.errors import UserError
from harness.files import digest
from harness.llm.backbones import forward_flops
from harness.runner.layout import POOL

PETA = 1e15
_TOKENS = ["prompt_tokens", "completion_tokens"]
_OF_BACKBONE = {
    "size": ("Size", "billions of parameters"),
    "price_in": ("Price of prompts", "per million tokens"),
    "price_out": ("Price of replies", "per million tokens"),
}
_WITH_CACHE = "With cache"
_CACHE = (
    f"{_WITH_CACHE}: all calls, with prompt tokens that a server had in its cache at the price `cached` of its model."
)
_PER_QUESTION = ["calls", *_TOKENS]


def build(results: Results) -> Table:
    """Return the rows that were run: means over test questions and seeds."""
    frame = with_costs(results.frame[results.frame["was_run"]], results).join(results.per_row(_calls))
    frame["cost_of_right"] = frame["cost_total"] / (frame["n"] * frame["fraction"]).where(frame["fraction"] > 0)
    frame[_PER_QUESTION] = frame[_PER_QUESTION].div(frame["n"], axis=0)
    if frame["saved"].isna().all():
        frame = frame.drop(columns="saved")
    else:
        frame["cost_with_cache"] = frame["cost_per_query_all_calls"] - frame.pop("saved") / frame["n"]
    groups = {(title, n): _group(rows) for _, title, n, rows in by_benchmark(results, frame)}
    cache = [_CACHE] if "cost_with_cache" in frame else []
    return results_table(results, row_labels(results.ran), groups, frame, cache)


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
        return math.nan
    calls = cell.rows("calls", ["backbone", "cached_tokens"])
    return float((calls["cached_tokens"] * calls["backbone"].map(rates)).sum()) / 1e6


def _group(rows: pd.DataFrame) -> dict[str, list[Entry]]:
    tokens = format_series(rows["prompt_tokens"], "{:.0f} + ") + format_series(rows["completion_tokens"], "{:.0f}")
    return {
        "Calls": entries(rows["calls"], "{:.1f}", NOT_RUN, below=format_series(rows["copies"], "{:.0f}% copies")),
        "Tokens": entries(tokens, missing=NOT_RUN),
        **table.costs(rows, FAR),
        **table.all_calls(rows),
        **({_WITH_CACHE: entries(UNIT * rows["cost_with_cache"], format_cost)} if "cost_with_cache" in rows else {}),
        "Right answer": entries(UNIT * rows["cost_of_right"], format_cost),
        "Dearest (%)": entries(rows["dearest"].where(rows.index.get_level_values("backbone") == POOL), "{:.0f}"),
    }


def of_test_set(results: Results) -> Table:
    """Return accuracy and cost on one benchmark (paper, Per-Dataset Accuracy and Cost; D-REPORT-2)."""
    benchmark, _ = results.only_benchmark()
    frame = with_costs(results.frame, results)
    n = results.questions(benchmark)
    groups = {
        ("Accuracy (%)", n): table.accuracies(frame),
        ("Cost of a question (1e-4)", n): {**table.costs(frame, FAR), **table.all_calls(frame)},
        ("Total cost", table.scaled_to(frame.sort_values("published_questions"))): table.totals(frame),
    }
    return results_table(results, row_labels(frame), groups, frame)


def hardware(results: Results) -> Table:
    """Return FLOPs and seconds of a question (paper, Cost Calculation for Open-Weight Backbones; D-REPORT-3).

    The published rows come first, then the others.
    """
    printed = results.printed("hw_cost")
    known = dict.fromkeys([*printed.index.droplevel("benchmark"), *results.ran.index])
    rows = [row for row in known if row in results.rows.index]
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
        groups[f"{title}, PFLOPs", n] = table.side_by_side(part, "pflops", "{:.3f}", beside=flops_ratio, below=below)
        time = {"Publ.": entries(part["published_seconds"], "{:.1f}")}
        if is_timed:
            text = format_series(part["seconds"], "{:.2f}").mask(part["n"].isna(), NOT_RUN)
            time["Meas."] = entries(text, beside=time_ratio)
        # Without a measured time the column has no n.
        groups[f"{title}, seconds", n if is_timed else ""] = time
    labels = row_labels(results.rows.loc[rows].assign(section="rows"), "section", "method_title", "backbone_title")
    return results_table(results, labels, groups, frame)


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
    known = [time.in_flight for time in times if time.in_flight is not None and time.test_s is not None]
    return {"seconds": fmean(map(seconds, cells)), "in_flight": min(known, default=math.nan)}


def backbones(results: Results) -> Table:
    """Return sizes and prices, in the paper and here: the paper's backbones, then other declared ones."""
    preset, published = results.run, results.published
    declared = preset.declared
    identity = short(digest({key: one.model_dump(mode="json") for key, one in declared.items()}))
    prices = {key: (price.size, price.input, price.output) for key, price in published.prices.items()}
    printed = pd.DataFrame.from_dict(prices, orient="index", columns=[f"published_{name}" for name in _OF_BACKBONE])
    here = {
        key: (one.model, one.parameters_b, one.price_in, one.price_out, one.revision, one.context_length)
        for key, one in declared.items()
    }
    frame = pd.DataFrame.from_dict(here, orient="index", columns=["model", *_OF_BACKBONE, "revision", "context_length"])
    frame = frame.reindex(list(dict.fromkeys([*prices, *here]))).join(printed)
    is_asked = frame["model"].notna() & frame.index.isin(preset.backbones)
    # Prices follow the size (D-GEN-1), so a size that differs from the printed one changes the price.
    follows = frame["size"].eq(frame["published_size"].fillna(frame["size"]))
    frame = frame.assign(
        follows_the_rule=follows.astype(object).where(frame["model"].notna()),
        replies=is_asked.map({True: "simulated" if preset.simulated else "by a server", False: None}),
        preset=preset.name,
        config_hash=identity,
    )
    revisions = frame["revision"].map(lambda name: "not pinned" if pd.isna(name) or preset.simulated else short(name))
    groups = {group: _columns(frame, name) for name, group in _OF_BACKBONE.items()}
    groups["Asked", f"preset {preset.name}"] = {
        "Replies": entries(frame["replies"], str, NOT_RUN),
        "Revision": entries(revisions.where(is_asked, ""), missing=NOT_RUN),
        "Context": entries(frame["context_length"].where(is_asked), "{:.0f}", NOT_RUN),
    }
    titles = [published.backbones.get(key, key) for key in frame.index]
    names = frame.assign(section="pool", title=titles, model=frame["model"].fillna("not declared"))
    files = sorted({backbone.weights for backbone in declared.values() if backbone.weights})
    weights = f"Models and revisions are those of the weights {', '.join(files)}, not the original ones."
    described = describe_run(results, frame.rename_axis("backbone").reset_index(), [weights] * bool(files))
    described |= {"simulated": preset.simulated, "provenance": {"preset": preset.name, "backbones": identity}}
    labels = row_labels(names, "section", "title", "model", heads=("Backbone", "Model"))
    return Table(**described, shown=table.lay_out(labels, groups))


def _columns(frame: pd.DataFrame, name: str) -> dict[str, list[Entry]]:
    here, printed = (format_series(frame[column], "{:g}") for column in (name, f"published_{name}"))
    apart = format_series(frame[name] - frame[f"published_{name}"], "{:+g}").where(here != printed, "")
    sign = frame["follows_the_rule"].eq(False).map({True: FAR, False: ""})
    return {"Publ.": entries(printed), "Here": entries(here, missing=NOT_RUN, sign=sign, beside=apart)}

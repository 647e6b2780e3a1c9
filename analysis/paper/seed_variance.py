"""Mean and standard deviation of accuracy over training seeds (paper, Variance across Training Seeds)."""

from itertools import chain

import pandas as pd

from analysis.exhibit import Entry, signed
from analysis.frames import AVERAGE, KEY, Results
from analysis.registry import Source
from analysis.table import Table, accuracies, format_series, join_values, labels_of, results_table, side_by_side
from harness.errors import UserError

OVERALL = "overall"


def build(source: Source) -> Table:
    """Return mean and deviation of each method and one row per seed. Raises UserError if a seed lacks a benchmark."""
    results = source.results()
    seeds, printed = _by_seed(results), results.printed("seed_variance")
    # The order of the paper's table differs from that of its main table.
    order = dict.fromkeys([*printed.index.unique("benchmark"), *sorted(results.benchmarks)])
    keys = [key for key in order if key in results.benchmarks]
    frame = _frame(results, seeds, printed, [*keys, OVERALL])
    heads = {key: (results.benchmarks[key], results.questions(key)) for key in keys}
    heads |= {OVERALL: ("Overall", "")} if results.has_average else {}
    groups = {head: _group(results, frame, key) for key, head in heads.items()}
    titles = results.rows.loc[frame.index.droplevel("benchmark").unique(), ["method_title", "backbone_title"]]
    rows = [
        (key, method, backbone if label == "mean" else "", label)
        for (key, _), method, backbone in titles.itertuples(name=None)
        for label in ("mean", "sd")
    ]
    legend = [*source.legend]
    if seeds.groupby(KEY[:2]).size().nunique() > 1:
        legend.append("The methods were trained with different numbers of seeds: their deviations are not comparable.")
    labels = labels_of(rows, ("Method", "LLM", ""))
    return results_table(results, "seed-variance", source.caption, labels, groups, legend, frame)


def _by_seed(results: Results) -> pd.DataFrame:
    by_seed = {
        (*key[:2], cell.run.seed, key[2]): 100 * float(cell.items["correct"].mean())
        for key, cells in results.cells_by_row.items()
        for cell in cells
    }
    table = pd.Series(by_seed).rename_axis([*KEY[:2], "seed", "benchmark"]).unstack("benchmark")
    # Every training must have the same weight in a mean.
    missing = (table.isna() & table.notna().groupby(level=KEY[:2]).transform("any")).stack()
    if missing.any():
        method, backbone, seed, benchmark = missing.idxmax()
        seeds = ", ".join(map(str, table.loc[method, backbone].index))
        raise UserError(
            f"no cell of {method} on {benchmark} with {backbone} and seed {seed}; its other benchmarks have seeds "
            f"{seeds}; run it, or leave that seed out everywhere"
        )
    paper = table.reindex(columns=list(results.published.benchmarks))
    return table.assign(**{OVERALL: paper.mean(axis=1, skipna=False)})


def _frame(results: Results, seeds: pd.DataFrame, printed: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    order = dict.fromkeys([*printed.index.droplevel("benchmark"), *results.ran.index.sort_values()])
    long = seeds.rename_axis(columns="benchmark").stack().dropna()
    spread = long.groupby(KEY).agg(mean="mean", sd="std", by_seed=join_values)
    averages = results.averages.rename(index={AVERAGE: OVERALL}, level="benchmark")
    averages["n"] = results.measured["n"].groupby(KEY[:2]).sum()
    measured = pd.concat([results.measured, averages.loc[averages["ran"]].reindex(columns=results.measured.columns)])
    keys = [key for row in order for name in names if (key := (*row, name)) in spread.index]
    frame = spread.join([measured, printed[["mean", "sd"]].add_prefix("published_")]).loc[keys]
    difference = results.compared(frame["mean"] - frame["published_mean"]).astype(float).round(2)
    return frame.assign(difference=difference)


def _group(results: Results, frame: pd.DataFrame, key: str) -> dict[str, list[Entry]]:
    values = frame.reindex([(*row, key) for row in frame.index.droplevel("benchmark").unique()])
    values = values.assign(published=values["published_mean"], ran=values["mean"].notna(), several=False)
    apart = format_series(results.compared(values["sd"].round(2) - values["published_sd"]), signed)
    means, deviations = accuracies(values), side_by_side(values, "sd", "{:.2f}", beside=apart)
    return {title: [*chain(*zip(mean, deviations[title], strict=True))] for title, mean in means.items()}

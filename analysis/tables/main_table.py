"""The main table: accuracy of every method on every benchmark, published and measured."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import columns, notes
from analysis.columns import accuracies, by_benchmark
from analysis.exhibit import NO, YES
from analysis.frames import AVERAGE, Results
from analysis.source import Source
from analysis.table import Table


def build(source: Source) -> Table:
    """Return the published rows in the paper's order, and below them those the paper does not have."""
    results = source.results()
    groups = {(title, n): accuracies(values) for _, title, n, values in by_benchmark(results, results.frame)}
    frame = results.frame
    if results.has_average:
        groups["Avg.", ""] = accuracies(results.averages)
        order = [(*row, key) for row in results.rows_to_show.index for key in (*results.benchmarks, AVERAGE)]
        frame = pd.concat([frame, results.averages]).loc[order]
    rows, flags = results.rows_to_show, ("multi_agent", "routing")
    rows = rows.assign(**{name: rows[name].map({True: YES, False: NO}).fillna("") for name in flags})
    return columns.table(
        results,
        label="main-table",
        caption=source.caption,
        rows=columns.labels(rows, "family", "method_title", "backbone_title", *flags),
        heads=("Method", "LLM", "M", "R"),
        groups=groups,
        legend=[*source.legend, *_legend(results)],
        frame=frame.reset_index(),
    )


def _legend(results: Results) -> Iterator[str]:
    if results.measured["learned"].any():
        yield "What learned rows learned from, and how sure their policies ended, is in the table training_budget."
    yield from notes.protocol(results)
    yield from notes.seeds(results)
    uneven = results.averages.loc[results.averages["uneven"].eq(True), "name"]
    if results.has_average and len(uneven):
        yield f"No average over benchmarks with different seeds: {', '.join(uneven)}."
    yield from notes.without_verdict(results)
    yield from notes.secondary_rules(results)

"""The main table: accuracy of every method on every benchmark, published and measured."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import columns, notes
from analysis.beyond.paired import compare_rows
from analysis.columns import accuracies, by_benchmark
from analysis.exhibit import NO, TIED, YES
from analysis.frames import AVERAGE, Results
from analysis.paired_tests import ALPHA, holm
from analysis.source import Source
from analysis.table import Table

_TIED = (
    f"{TIED}: the best row, and those whose difference from it is not significant (paired test on the same questions, "
    "Holm over the rows, 5 %): they cannot be told apart by these questions."
)


def build(source: Source) -> Table:
    """Return the published rows in the paper's order, and below them those the paper does not have."""
    results = source.results()
    tied = _tied(results)
    # Of several benchmarks the signs stand at the average alone.
    of_column = [] if results.has_average else tied
    groups = {(title, n): accuracies(values, of_column) for _, title, n, values in by_benchmark(results, results.frame)}
    frame = results.frame
    if results.has_average:
        groups["Avg.", ""] = accuracies(results.averages, tied)
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
        legend=[*source.legend, *([_TIED] if tied else []), *_legend(results)],
        frame=frame.reset_index(),
    )


def _tied(results: Results) -> list[tuple[str, str]]:
    """Return the rows that real runs do not tell apart from the best, on the average or on the only benchmark."""
    key = AVERAGE if results.has_average else next(iter(results.benchmarks))
    measured = (results.averages if results.has_average else results.frame)["measured"].dropna()
    if results.simulated or len(measured) < 2 or (len(results.benchmarks) > 1 and not results.has_average):
        return []
    best = measured.astype(float).idxmax()
    adjusted = holm(compare_rows(results, best[:2])["p"].xs(key, level="benchmark"))
    return [best[:2], *adjusted.index[adjusted >= ALPHA]]


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

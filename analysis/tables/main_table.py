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
    is_compared = frame["published"].notna().any()
    if not is_compared:
        groups = {head: {"Meas.": columns_of["Meas."]} for head, columns_of in groups.items()}
    rows, flags = results.rows_to_show, ("multi_agent", "routing")
    rows = rows.assign(**{name: rows[name].map({True: YES, False: NO}).fillna("") for name in flags})
    return columns.table(
        results,
        label="main-table",
        caption="Test accuracy (%), published and measured." if is_compared else "Test accuracy (%).",
        rows=columns.labels(rows, "family", "method_title", "backbone_title", *flags),
        heads=("Method", "LLM", "Mul.", "Rout."),
        groups=groups,
        legend=_legend(results),
        frame=frame.reset_index(),
    )


def _legend(results: Results) -> Iterator[str]:
    frame, averages = results.frame, results.averages
    several = results.measured["several"].any()
    means = "; of a mean over several seeds, over items and seeds, with seed 0 alone next to it"
    interval = f"Wilson{means if several else ''}{'; averages: t' if results.has_average else ''}"
    if frame["published"].notna().any():
        yield (
            "Publ.: from the paper. Meas.: this run on n items, "
            f"{notes.beside(results, 'measured minus published in points')}below it the 95 % interval ({interval})."
        )
    else:
        yield f"Meas.: this run on n items, below it the 95 % interval ({interval}). The paper has none of these rows."
    yield "Bold is the best value of a column and underlined the second best; equal values share a mark."
    yield f"Mul.: several agents; Rout.: routes over the pool of models ({YES} yes, {NO} no)."
    yield from notes.not_run(frame)
    if frame["published"].isna().any() and frame["published"].notna().any():
        yield notes.BLANK
    yield from notes.protocol(results)
    yield from notes.seeds(results)
    if results.has_average and averages["uneven"].eq(True).any():
        uneven = averages.loc[averages["uneven"].eq(True), "name"]
        yield f"No average over benchmarks with different seeds: {', '.join(uneven)}."
    yield from notes.without_verdict(results)
    yield from notes.secondary_rules(results)
    if results.measured["learned"].any():
        yield "What the learned rows learned from, and how sure their policies ended, is in the table training_budget."

"""The main table: accuracy of every method on every benchmark, published and measured.

To add a column, add it to :func:`_columns`, and its legend to ``config/artefacts.yaml``.
"""

from collections.abc import Sequence

import pandas as pd

from analysis import bounds, notes
from analysis.exhibit import NO, YES, Entry
from analysis.frames import AVERAGE, Results
from analysis.paired_tests import ALPHA, against, holm
from analysis.table import Table, accuracies, by_benchmark, results_table, row_labels


def build(results: Results) -> Table:
    """Return the published rows in the paper's order, then the others."""
    tied = _tied(results)
    # With several benchmarks only the average has the signs.
    of_column = [] if results.has_average else tied
    frame = results.frame.join(bounds.against_mix(results))
    if results.has_average:
        order = [(*row, key) for row in results.rows.index for key in (*results.benchmarks, AVERAGE)]
        frame = pd.concat([frame, results.averages]).loc[order]
    groups = {(title, n): _columns(values, of_column) for _, title, n, values in by_benchmark(results, frame)}
    if results.has_average:
        groups["Avg.", ""] = _columns(frame.xs(AVERAGE, level="benchmark", drop_level=False), tied)
    rows, flags = results.rows, ("multi_agent", "routing")
    rows = rows.assign(**{name: rows[name].map({True: YES, False: NO}).fillna("") for name in flags})
    names, heads = ("family", "method_title", "backbone_title", *flags), ("Method", "LLM", "M", "R")
    labels = row_labels(rows, *names, heads=heads)
    also = (*notes.without_verdict(results), *notes.secondary_rules(results))
    return results_table(results, labels, groups, frame, also)


def _columns(values: pd.DataFrame, tied: Sequence[tuple[str, str]]) -> dict[str, list[Entry]]:
    """Return the columns of a benchmark or the average. For the average, ``values`` has only accuracy."""
    return {**accuracies(values, tied), **bounds.mix_column(values)}


def _tied(results: Results) -> list[tuple[str, str]]:
    """Return the best row of a real run and those not significantly worse, on average or on the only benchmark."""
    key = AVERAGE if results.has_average else next(iter(results.benchmarks))
    measured = (results.averages if results.has_average else results.frame)["measured"].dropna()
    if results.simulated or len(measured) < 2 or (len(results.benchmarks) > 1 and not results.has_average):
        return []
    best = measured.astype(float).idxmax()
    adjusted = holm(against(results, best[:2])["p"].xs(key, level="benchmark"))
    return [best[:2], *adjusted.index[adjusted >= ALPHA]]

"""Accuracy and cost of every method on one benchmark, published and measured.

Paper, Per-Dataset Accuracy and Cost; D-REPORT-2.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import columns, notes
from analysis.frames import COST, IDENTITY, KEY, MEASURED, Results, with_costs
from analysis.source import Source
from analysis.table import FAR, Table

COLUMNS = [*KEY, "benchmark_title", "published", *COST, *MEASURED, "difference", *IDENTITY]


def build(source: Source) -> Table:
    """The table of the benchmark that ``options`` name; published and measured."""
    benchmark = str(source.options["benchmark"])
    results = source.results(benchmark)
    frame = with_costs(results.frame, results)
    n = results.questions(benchmark)
    sizes = " or ".join(f"{size:.0f}" for size in sorted(set(frame["published_questions"].dropna())))
    groups = {
        ("Accuracy (%)", n): columns.accuracies(frame),
        ("Cost of a question (1e-4)", n): {**columns.costs(frame, FAR), **columns.all_calls(frame)},
        ("Total cost", f"scaled to n = {sizes}"): columns.totals(frame),
    }
    return columns.table(
        results,
        label=f"cost-{benchmark.replace('_', '-')}",
        caption=f"Accuracy and cost on {results.benchmarks[benchmark]}.",
        rows=columns.labels(frame),
        heads=("Method", "LLM"),
        groups=groups,
        legend=_legend(results, frame),
        frame=frame.reset_index()[COLUMNS],
    )


def _legend(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    yield from notes.legend(results, frame)
    yield from notes.far(frame)
    yield "Behind each published row stands the number of questions that explains its accuracy, or comes closest."
    yield notes.TEST_ALONE

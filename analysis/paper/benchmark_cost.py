"""Accuracy and cost on one benchmark (paper, Per-Dataset Accuracy and Cost; D-REPORT-2)."""

from __future__ import annotations

from analysis import columns, notes
from analysis.exhibit import FAR
from analysis.frames import with_costs
from analysis.source import Source
from analysis.table import Table


def build(source: Source) -> Table:
    """Return the table of one benchmark, published and measured; raises UserError for cells of several."""
    results = source.results()
    benchmark, _ = results.only_benchmark()
    frame = with_costs(results.frame, results)
    n = results.questions(benchmark)
    return columns.table(
        results,
        label=f"cost-{benchmark.replace('_', '-')}",
        caption=source.caption,
        rows=columns.labels(frame),
        groups={
            ("Accuracy (%)", n): columns.accuracies(frame),
            ("Cost of a question (1e-4)", n): {**columns.costs(frame, FAR), **columns.all_calls(frame)},
            ("Total cost", columns.scaled_to(frame.sort_values("published_questions"))): columns.totals(frame),
        },
        legend=[*notes.legend(results, frame), *notes.far(frame), *source.legend, notes.TEST_ALONE],
        frame=frame.reset_index(),
    )

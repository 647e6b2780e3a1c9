"""Accuracy and cost on one benchmark (paper, Per-Dataset Accuracy and Cost; D-REPORT-2)."""

from analysis.exhibit import FAR
from analysis.frames import with_costs
from analysis.registry import Source
from analysis.table import Table, accuracies, all_calls, costs, results_table, row_labels, scaled_to, totals


def build(source: Source) -> Table:
    """Raises UserError for cells of several benchmarks."""
    results = source.results()
    benchmark, _ = results.only_benchmark()
    frame = with_costs(results.frame, results)
    n = results.questions(benchmark)
    groups = {
        ("Accuracy (%)", n): accuracies(frame),
        ("Cost of a question (1e-4)", n): {**costs(frame, FAR), **all_calls(frame)},
        ("Total cost", scaled_to(frame.sort_values("published_questions"))): totals(frame),
    }
    label = f"cost-{benchmark.replace('_', '-')}"
    return results_table(results, label, source.caption, row_labels(frame), groups, source.legend, frame)

"""Accuracy and cost of every method on one benchmark, published beside measured.

Paper, Per-Dataset Accuracy and Cost; D-REPORT-2.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import columns, notes
from analysis.frames import COST, IDENTITY, KEY, MEASURED, Results, with_costs
from analysis.source import Source
from analysis.table import FAR, Entry, Table, shown
from harness.errors import UserError

COLUMNS = [*KEY, "benchmark_title", "published", *COST, *MEASURED, "difference", *IDENTITY]


def build(source: Source) -> Table:
    """Build the table of the benchmark that ``options`` name; every published row stands in it, run or not.

    Raises:
        UserError: When a cell cannot be read, the cells do not belong in one table, or none is of the benchmark.
    """
    benchmark = str(source.options["benchmark"])
    whole = source.results()
    results = Results(tuple(cell for cell in whole.cells if cell.run.benchmark == benchmark), whole.published)
    if not results.cells:
        raise UserError(f"no cell of benchmark {benchmark} among those given; run the workflow for it first")
    frame = with_costs(results.frame, results)
    n = results.questions(benchmark)
    sizes = " or ".join(f"{size:.0f}" for size in sorted(set(frame["published_questions"].dropna())))
    groups = {
        ("Accuracy (%)", n): columns.accuracies(frame),
        ("Cost of a question (1e-4)", n): {**_far(frame), **columns.all_calls(frame)},
        ("Total cost", f"scaled to n = {sizes}"): columns.totals(frame),
    }
    rows = [(row.family, row.method_title, row.backbone_title) for row in frame.itertuples()]
    return Table(
        label=f"cost-{benchmark.replace('_', '-')}",
        caption=f"Accuracy and cost on {results.benchmarks[benchmark]}.{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(rows, ("Method", "LLM"), groups),
        notes=tuple(_notes(results, frame)),
        provenance=results.provenance,
        frame=frame.reset_index()[COLUMNS],
    )


def _far(frame: pd.DataFrame) -> dict[str, list[Entry]]:
    """The columns of costs, with a sign on the ratios that ask for an explanation."""
    found = columns.costs(frame)
    pairs = zip(found["Meas."], frame["is_far"], strict=True)
    return {**found, "Meas.": [entry._replace(sign=FAR) if far else entry for entry, far in pairs]}


def _notes(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    yield from notes.legend(results, frame)
    if frame["is_far"].any():
        yield f"{FAR}: apart by more than half an order of magnitude; docs/baselines.md says why."
    yield "Behind each published row stands the number of questions that explains its accuracy, or comes closest."
    yield "Training and search are not in here: the paper charges the test questions alone."

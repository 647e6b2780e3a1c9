"""What every learner learned from: questions, trajectories, updates, calls and cost of its training, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from analysis import notes, training
from analysis.frames import IDENTITY, KEY, Results
from analysis.source import Source
from analysis.table import NOT_RUN, Entry, Table, shown


def build(source: Source) -> Table:
    """Build the table: a row for each learner, benchmark by benchmark; means over the seeds.

    Raises:
        UserError: When a cell cannot be read, one was not trained, or the cells do not belong in one table.
    """
    results = source.results()
    found = training.learned(results)
    order = [(*row, key) for key in results.benchmarks for row in results.rows.index if (*row, key) in found.index]
    frame = found.loc[order].join(results.frame[["method_title", "backbone_title", "benchmark_title", *IDENTITY]])
    groups = {
        ("Training", ""): {
            **{name.capitalize(): [Entry(f"{value:,.0f}") for value in frame[name]] for name in training.BUDGET[:5]},
            "Tokens (1e3)": [Entry(f"{value / 1000:,.0f}") for value in frame["tokens"]],
            "Cost": [Entry(f"{value:.4f}") for value in frame["cost"]],
        },
        ("Trained policy", "on the test questions"): {
            "Entropy (% of uniform)": [_entropies(row) for _, row in frame.iterrows()],
            "Most frequent (%)": [_top(row) for _, row in frame.iterrows()],
        },
    }
    rows = [(row.Index[2], row.benchmark_title, row.method_title, row.backbone_title) for row in frame.itertuples()]
    columns = [*KEY, "benchmark_title", *found.columns, *IDENTITY]
    return Table(
        label="training-budget",
        caption=(
            "What every learner used for its training or search, and the policy it ended with."
            f"{notes.conditions(results)}"
        ),
        simulated=results.simulated,
        shown=shown(rows, ("Benchmark", "Method", "LLM"), groups),
        notes=tuple(_notes(results)),
        provenance=results.provenance,
        frame=frame.reset_index()[columns],
    )


def _entropies(row: Any) -> Entry:
    found = {name: row[f"entropy_{name}"] for name in training.CHOICES}
    return Entry(", ".join(f"{name} {value:.0f}" for name, value in found.items() if not pd.isna(value)) or NOT_RUN)


def _top(row: Any) -> Entry:
    made = (name for name in training.CHOICES if not pd.isna(row[f"top_{name}_share"]))
    return Entry(next((f"{row[f'top_{name}']} {row[f'top_{name}_share']:.0f}" for name in made), NOT_RUN))


def _notes(results: Results) -> Iterator[str]:
    several = results.measured["several"].any()
    yield (
        "Passes: over the training questions, of a search its rounds. Trajectories: graded attempts at a question. "
        "Updates: steps of the optimiser; of a search, workflows that were scored. Calls, tokens and cost, in the "
        "paper's unit: of every use of a model in the training, final calls and those of AFlow's optimizer included. "
        f"The costs of other tables have none of it.{' Means over the seeds.' if several else ''}"
    )
    yield (
        f"{training.ENTROPY} Most frequent: the backbone, or the action of a method with one backbone, that was chosen "
        f"most. {NOT_RUN}: a search leaves a workflow and no policy, and a greedy choice has no entropy."
    )
    yield (
        "Budgets differ as the methods do, and the paper prints none of a baseline. Where epochs, rollouts and rounds "
        "come from is said under D-GMR-10, D-MR-5, D-PUP-8 and D-AF-6."
    )

"""What every learner learned from: questions, trajectories, updates, calls and cost of its training, side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from analysis import columns, training_log
from analysis.columns import entries
from analysis.frames import IDENTITY, KEY, Results
from analysis.source import Source
from analysis.table import NOT_RUN, Table, format_cost


def build(source: Source) -> Table:
    """Return a row a learner, benchmark by benchmark; means over the seeds."""
    results = source.results()
    summaries = training_log.training_summaries(results)
    order = [(*row, key) for key in results.benchmarks for row in results.rows.index if (*row, key) in summaries.index]
    frame = summaries.loc[order].join(results.frame[["method_title", "backbone_title", "benchmark_title", *IDENTITY]])
    groups = {
        ("Training", ""): {
            **{name.capitalize(): entries(frame[name], "{:,.0f}") for name in training_log.BUDGET[:5]},
            "Tokens (1e3)": entries(frame["tokens"] / 1000, "{:,.0f}"),
            "Cost": entries(frame["cost"], lambda cost: format_cost(cost, 4)),
        },
        ("Trained policy", "on the test questions"): {
            "Entropy (% of uniform)": entries(frame.apply(_entropies, axis=1), missing=NOT_RUN),
            "Most frequent (%)": entries(frame.apply(_top, axis=1), missing=NOT_RUN),
        },
    }
    tidy = frame.reset_index()
    return columns.table(
        results,
        label="training-budget",
        caption="What every learner used for its training or search, and the policy it ended with.",
        rows=columns.labels(tidy, "benchmark", "benchmark_title", "method_title", "backbone_title"),
        heads=("Benchmark", "Method", "LLM"),
        groups=groups,
        legend=_legend(results),
        frame=tidy[[*KEY, "benchmark_title", *summaries.columns, *IDENTITY]],
    )


def _entropies(row: pd.Series) -> str:
    entropies = row[[f"entropy_{name}" for name in training_log.CHOICES]].dropna()
    return ", ".join(f"{name.removeprefix('entropy_')} {value:.0f}" for name, value in entropies.items())


def _top(row: pd.Series) -> str:
    kinds = [name for name in training_log.CHOICES if not pd.isna(row[f"top_{name}_share"])]
    return f"{row[f'top_{kinds[0]}']} {row[f'top_{kinds[0]}_share']:.0f}" if kinds else ""


def _legend(results: Results) -> Iterator[str]:
    several = results.measured["several"].any()
    yield (
        "Passes: over the training questions, of a search its rounds. Trajectories: graded attempts at a question. "
        "Updates: steps of the optimiser; of a search, workflows that were scored. Calls, tokens and cost, in the "
        "paper's unit: of every use of a model in the training, final calls and those of AFlow's optimizer included. "
        f"The costs of other tables have none of it.{' Means over the seeds.' if several else ''}"
    )
    yield (
        f"{training_log.ENTROPY} Most frequent: the backbone, or the action of a method with one backbone, that was "
        f"chosen most over all questions. {NOT_RUN}: a search leaves a workflow and no policy, and a greedy choice no "
        "entropy."
    )
    yield (
        "Budgets differ as the methods do, and the paper prints none of a baseline. Where epochs, rollouts and rounds "
        "come from is said under D-GMR-10, D-MR-5, D-PUP-8 and D-AF-6."
    )

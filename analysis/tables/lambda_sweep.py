"""GMR trained with different weights of cost: what each buys in accuracy, cost and steps (D-GMR-5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import numpy as np
import pandas as pd

from analysis import columns, notes, sweeps, traces
from analysis.frames import COST, IDENTITY, MEASURED, QUESTIONS, Results, with_costs
from analysis.frontier import Point, frontier
from analysis.ratios import estimates, mean_of
from analysis.results import TRAINING, Cell
from analysis.source import Source
from analysis.statistics import Estimate
from analysis.table import NO, NOT_RUN, YES, Entry, Table, marks, shown
from analysis.training import updates

_COLUMNS = [
    *("method", "lambda_c", "backbone", "benchmark", "benchmark_title", "depth", "depth_low", "depth_high", "frontier"),
    *("training_utility", "published", *COST, *MEASURED, "difference", *IDENTITY),
]


def build(source: Source) -> Table:
    """Build the table: a row a weight, ascending, benchmark by benchmark.

    Raises:
        UserError: When a cell cannot be read or the cells do not belong in one table.
    """
    results = source.results()
    frame = _frame(results)
    parts = [_group(own) for *_, own in columns.by_benchmark(results, frame)]
    columns_of = {title: [entry for part in parts for entry in part[title]] for title in parts[0]}
    sizes = " or ".join(f"{QUESTIONS[key]:.0f}" for key in results.benchmarks if key in QUESTIONS)
    total, utility = columns_of.pop("total"), columns_of.pop("utility")
    rows = [
        (
            row.Index[2],
            f"{row.benchmark_title}, n = {row.n}",
            f"{row.lambda_c:g}",
            row.seeds.replace(" ", ", "),
        )
        for row in frame.itertuples()
    ]
    groups = {
        ("Test questions", ""): columns_of,
        ("Total cost", f"scaled to n = {sizes}" if sizes else ""): {"": total},
        ("Training", "last epoch"): {"Utility": utility},
    }
    return Table(
        label="lambda-sweep",
        caption=f"GMR trained with three weights of cost.{notes.conditions(results)}",
        simulated=results.simulated,
        shown=shown(rows, ("Benchmark", "Cost weight", "Seeds"), groups),
        notes=tuple(_notes(results, frame)),
        provenance=results.provenance,
        frame=frame.reset_index()[_COLUMNS],
    )


def _frame(results: Results) -> pd.DataFrame:
    """Every weight that was run on a benchmark; the utility of a training without its log is missing."""
    weights = sweeps.values(sweeps.COST_WEIGHTS, "lambda_c")
    keys = [
        key
        for benchmark in results.benchmarks
        for method in weights
        for key in results.trainings
        if (key[0], key[2]) == (method, benchmark)
    ]
    index = pd.MultiIndex.from_tuples(keys, names=results.measured.index.names)
    blank = {"published": float("nan"), "published_total": float("nan")}
    frame = pd.DataFrame(blank, index=index).assign(published_questions=[QUESTIONS.get(key[2]) for key in keys])
    frame = with_costs(results.beside(frame), results)
    depths = {key: _depth(results.trainings[key]) for key in keys}
    best = {
        key: place in frontier([Point(row.cost_per_query, row.fraction) for row in own.itertuples()])
        for _, own in frame.groupby("benchmark")
        for place, key in enumerate(own.index)
    }
    return frame.assign(
        lambda_c=[weights[key[0]] for key in keys],
        benchmark_title=[results.benchmarks[key[2]] for key in keys],
        depth=[depths[key].mean for key in keys],
        depth_low=[depths[key].low for key in keys],
        depth_high=[depths[key].high for key in keys],
        frontier=[best[key] for key in keys],
        training_utility=[_utility(results.trainings[key]) for key in keys],
    )


def _depth(cells: Sequence[Cell]) -> Estimate:
    return estimates([{"depth": mean_of(traces.read(cell).depth.tolist())} for cell in cells])["depth"]


def _utility(cells: Sequence[Cell]) -> float:
    """Mean over the rollouts of the last epoch, then over the seeds."""
    if not all((cell.folder / TRAINING).is_file() for cell in cells):
        return float("nan")
    logs = [updates(cell) for cell in cells]
    last = [log[log["epoch"] == log["epoch"].max()] for log in logs]
    return fmean(float(np.average(log["utility"], weights=log["trajectories"])) for log in last)


def _group(own: pd.DataFrame) -> dict[str, list[Entry]]:
    """The columns of one benchmark, whose best values are marked among themselves."""
    rows = list(own.itertuples())
    utilities = zip(own["training_utility"], marks(own["training_utility"].round(4)), strict=True)
    return {
        "Accuracy (%)": columns.accuracies(own)["Meas."],
        "Cost (1e-4)": columns.costs(own)["Meas."],
        **columns.all_calls(own),
        "Steps": [Entry(f"{row.depth:.2f}", below=f"{row.depth_low:.2f}–{row.depth_high:.2f}") for row in rows],
        "Frontier": [Entry(YES if row.frontier else NO) for row in rows],
        "total": columns.totals(own)["Meas."],
        "utility": [Entry(NOT_RUN) if pd.isna(value) else Entry(f"{value:.4f}", mark) for value, mark in utilities],
    }


def _notes(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    several = frame["several"].any()
    yield (
        "The paper names these weights and says neither which benchmark was run with which nor what any of them gave, "
        "so nothing stands beside the measured values."
    )
    yield (
        "Cost of a question in 1e-4 of the paper's unit, of its steps and with the aggregation (all calls); steps: "
        "mean depth of a trajectory. Below a value its 95 % "
        f"interval: accuracy {'over questions and seeds' if several else 'Wilson'}, cost and steps by a bootstrap over "
        f"questions{' and seeds' if several else ''}."
    )
    yield (
        f"Frontier: {YES} none of the other weights is at least as accurate and as cheap and better in one; "
        f"{NO} one is."
    )
    yield (
        "Utility: reward minus the weighted cost of the steps, mean over the rollouts of the last epoch. It is what a "
        "weight may be chosen by, as no test question is in it (D-GMR-5); each weight has its own scale, on which cost "
        "counts little beside success. Bold is the best of the column and underlined the second best."
    )
    if frame["training_utility"].isna().any():
        yield f"{NOT_RUN}: no log of the training."
    yield from notes.protocol(results)

"""GMR trained with different weights of cost: what each buys in accuracy, cost and steps (D-GMR-5).

It is one of the paper's sweeps, whose methods differ in one setting alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import pandas as pd

from analysis import columns, notes
from analysis.columns import by_benchmark, entries, interval_of, stack_benchmarks
from analysis.exhibit import NO, NOT_RUN, YES, Entry
from analysis.figure import on_frontier
from analysis.finished_cells import TRAINING, FinishedCell, mean_of_updates, updates
from analysis.frames import COST, IDENTITY, MEASURED, QUESTIONS, Results, with_costs
from analysis.source import Source
from analysis.statistics import mean
from analysis.table import Table
from harness.errors import UserError

COST_WEIGHTS = ("gmr_lambda_10", "gmr", "gmr_lambda_50")  # λ_c
_COLUMNS = [
    *("method", "lambda_c", "backbone", "benchmark", "benchmark_title", "depth", "depth_low", "depth_high", "frontier"),
    *("training_utility", "published", *COST, *MEASURED, "difference", *IDENTITY),
]


def build(source: Source) -> Table:
    """Return a row a weight and benchmark, ascending; the utility of a training without its log is missing."""
    results = source.results()
    frame = sweep(results, COST_WEIGHTS, "lambda_c")
    best = [on_frontier(rows["cost_per_query"], rows["fraction"]) for _, rows in frame.groupby("benchmark")]
    sizes = pd.Series([QUESTIONS.get(key) for *_, key in frame.index], frame.index, dtype=float)
    frame = frame.assign(
        frontier=pd.concat(best), published_questions=sizes, total_scaled=frame["cost_per_query"] * sizes
    )
    frame = frame.join(results.per_row(_steps_and_utility))
    scaled = columns.scaled_to(frame)
    return columns.table(
        results,
        label="lambda-sweep",
        caption="GMR trained with three weights of cost.",
        rows=[
            (row.Index[2], f"{row.benchmark_title}, n = {row.n}", f"{row.lambda_c:g}", row.seeds.replace(" ", ", "))
            for row in frame.itertuples()
        ],
        heads=("Benchmark", "Cost weight", "Seeds"),
        groups=stack_benchmarks([_groups(rows, scaled) for *_, rows in by_benchmark(results, frame)]),
        legend=_legend(results, frame),
        frame=frame.reset_index()[_COLUMNS],
    )


def sweep(results: Results, names: Sequence[str], setting: str) -> pd.DataFrame:
    """Return what a sweep of a setting (``lambda_c`` or ``max_depth``) measured, by benchmark and rising setting.

    Raises UserError for a method not in ``names``.
    """
    foreign = sorted({method for method, *_ in results.cells_by_row} - set(names))
    if foreign:
        raise UserError(f"the sweep of {setting} was given the method {foreign[0]}; expected only {', '.join(names)}")
    settings = {cell.run.method: cell.run.config[setting] for cell in results.cells}
    # The paper prints no number of a sweep.
    blank = dict.fromkeys(("published", "published_total", "published_questions"), float("nan"))
    frame = with_costs(results.with_measured(pd.DataFrame(blank, index=results.measured.index)), results)
    frame[setting] = [settings[method] for method, *_ in frame.index]
    frame = frame.sort_values(setting)
    return pd.concat([frame.xs(key, level="benchmark", drop_level=False) for key in results.benchmarks])


def _steps_and_utility(cells: Sequence[FinishedCell]) -> dict[str, float]:
    depth = mean([cell.items["depth"] for cell in cells])
    measures = {"depth": depth.mean, "depth_low": depth.low, "depth_high": depth.high, "training_utility": float("nan")}
    if all((cell.folder / TRAINING).is_file() for cell in cells):
        logs = map(updates, cells)
        measures["training_utility"] = fmean(mean_of_updates(log, "utility", log["epoch"]).iloc[-1] for log in logs)
    return measures


def _groups(rows: pd.DataFrame, scaled: str) -> dict[tuple[str, str], dict[str, list[Entry]]]:
    return {
        ("Test questions", ""): {
            "Accuracy (%)": columns.accuracies(rows)["Meas."],
            "Cost (1e-4)": columns.costs(rows)["Meas."],
            **columns.all_calls(rows),
            "Steps": entries(rows["depth"], "{:.2f}", below=interval_of(rows, "depth", "{:.2f}")),
            "Frontier": entries(rows["frontier"].map({True: YES, False: NO})),
        },
        ("Total cost", scaled): {"": columns.totals(rows)["Meas."]},
        ("Training", "last epoch"): {"Utility": entries(rows["training_utility"], "{:.4f}", NOT_RUN)},
    }


def _legend(results: Results, frame: pd.DataFrame) -> Iterator[str]:
    several = frame["several"].any()
    yield (
        "The paper names these weights and says neither which benchmark was run with which nor what any of them gave, "
        "so nothing stands next to the measured values."
    )
    yield (
        "Cost of a question in 1e-4 of the paper's unit, of its steps and with the aggregation (all calls); steps: "
        "mean depth of a trajectory. Below a value its 95 % "
        f"interval: accuracy {'over questions and seeds' if several else 'Wilson'}, cost and steps over "
        f"questions{' and seeds' if several else ''}."
    )
    yield (
        f"Frontier: {YES} none of the other weights is at least as accurate and as cheap and better in one; "
        f"{NO} one is."
    )
    yield (
        "Utility: reward minus the weighted cost of the steps, mean over the rollouts of the last epoch. It is what a "
        "training was after, and no test question is in it (D-GMR-5). Each weight has a scale of its own, so that "
        "utilities of different weights do not compare and none is marked; of accuracies bold is the best of a column "
        "and underlined the second best."
    )
    if frame["training_utility"].isna().any():
        yield f"{NOT_RUN}: no log of the training."
    yield from notes.protocol(results)

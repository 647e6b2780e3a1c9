"""Training budget of every learner: questions, trajectories, updates, calls and cost."""

import pandas as pd

from analysis.exhibit import format_cost
from analysis.finished_cells import FinishedCell, read_table, updates
from analysis.frames import IDENTITY
from analysis.registry import Source
from analysis.table import Table, entries, results_table, row_labels

CALLS = "training_calls.parquet"
#: The columns of a training budget.
BUDGET = ["questions", "passes", "trajectories", "updates", "calls", "tokens", "cost"]


def build(source: Source) -> Table:
    """Return one row per learner and benchmark: means over the seeds."""
    results = source.results()
    budgets = results.per_row(
        lambda cells: pd.DataFrame(map(_budget, cells), columns=BUDGET).mean(skipna=False)
    ).dropna()
    order = [(*row, key) for key in results.benchmarks for row in results.rows.index if (*row, key) in budgets.index]
    frame = budgets.loc[order].join(results.frame[["method_title", "backbone_title", "benchmark_title", *IDENTITY]])
    shown = {
        **{name.capitalize(): entries(frame[name], "{:,.0f}") for name in BUDGET[:5]},
        "Tokens (1e3)": entries(frame["tokens"] / 1000, "{:,.0f}"),
        "Cost": entries(frame["cost"], lambda cost: format_cost(cost, 4)),
    }
    names, heads = ("benchmark", "benchmark_title", "method_title", "backbone_title"), ("Benchmark", "Method", "LLM")
    rows = row_labels(frame.reset_index(), *names, heads=heads)
    groups = {("Training", ""): shown}
    return results_table(results, "training-budget", source.caption, rows, groups, source.legend, frame)


def _budget(cell: FinishedCell) -> dict[str, float]:
    """Return the :data:`BUDGET` of a cell's training: empty without training, zeros if it made no update."""
    if not (cell.folder / CALLS).is_file():
        return {}
    calls = read_table(cell.folder / CALLS, ("prompt_tokens", "completion_tokens", "cost"))
    log = updates(cell)
    if log.empty:
        return dict.fromkeys(BUDGET, 0)
    return {
        "questions": cell.run.data.n_train,
        "passes": log["epoch"].nunique(),
        "trajectories": float(log["trajectories"].sum()),
        "updates": len(log),
        "calls": len(calls),
        "tokens": float(calls[["prompt_tokens", "completion_tokens"]].to_numpy().sum()),
        "cost": float(calls["cost"].sum()),
    }

"""Training budget of every learner: questions, trajectories, updates, calls and cost."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis import columns
from analysis.columns import entries
from analysis.exhibit import NOT_RUN, format_cost
from analysis.finished_cells import FinishedCell, read_table, updates
from analysis.frames import IDENTITY, KEY, Results
from analysis.source import Source
from analysis.table import Table

CALLS = "training_calls.parquet"
#: Choices of a policy among several options, by name in the table of decisions.
CHOICES = ("backbone", "role", "mode", "action")
#: The columns of a training budget.
BUDGET = ["questions", "passes", "trajectories", "updates", "calls", "tokens", "cost"]


def build(source: Source) -> Table:
    """Return one row per learner and benchmark: means over the seeds."""
    results = source.results()
    summaries = training_summaries(results)
    order = [(*row, key) for key in results.benchmarks for row in results.rows.index if (*row, key) in summaries.index]
    frame = summaries.loc[order].join(results.frame[["method_title", "backbone_title", "benchmark_title", *IDENTITY]])
    groups = {
        ("Training", ""): {
            **{name.capitalize(): entries(frame[name], "{:,.0f}") for name in BUDGET[:5]},
            "Tokens (1e3)": entries(frame["tokens"] / 1000, "{:,.0f}"),
            "Cost": entries(frame["cost"], lambda cost: format_cost(cost, 4)),
        },
        ("Trained policy", "on the test questions"): {
            "Entropy (% of uniform)": entries(frame.apply(_entropies, axis=1), missing=NOT_RUN),
            "Most frequent (%)": entries(frame.apply(_top, axis=1), missing=NOT_RUN),
        },
    }
    names, heads = ("benchmark", "benchmark_title", "method_title", "backbone_title"), ("Benchmark", "Method", "LLM")
    rows = columns.labels(frame.reset_index(), *names, heads=heads)
    return columns.table(results, "training-budget", source.caption, rows, groups, source.legend, frame)


def training_summaries(results: Results) -> pd.DataFrame:
    """Return :data:`BUDGET` of each row's training, and entropy and most frequent option of each choice in percent."""
    rows = {
        key: {**pd.DataFrame(map(_budget, cells)).mean(), **_choices(cells)}
        for key, cells in results.cells_by_row.items()
        if all((cell.folder / CALLS).is_file() for cell in cells)
    }
    of_choices = [name for key in CHOICES for name in (f"entropy_{key}", f"top_{key}", f"top_{key}_share")]
    return pd.DataFrame(list(rows.values()), pd.MultiIndex.from_tuples(rows, names=KEY), [*BUDGET, *of_choices])


def _budget(cell: FinishedCell) -> dict[str, float]:
    """Return the :data:`BUDGET` of a cell's training; zeros if it made no update."""
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


def _choices(cells: Sequence[FinishedCell]) -> dict[str, Any]:
    """Return entropy and most frequent option of each choice on the test questions: means over the seeds."""
    drawn = pd.concat([_test_choices(cell).assign(seed=cell.run.seed) for cell in cells])
    shares_of: dict[str, Any] = {}
    for name, rows in drawn.groupby("name"):
        if rows["seed"].nunique() < len(cells):
            continue
        by_seed = rows.groupby("seed")
        shares = by_seed["choice"].value_counts(normalize=True).unstack(fill_value=0.0).mean()
        surprise = -100 * by_seed["log_prob"].mean() / np.log(rows["options"]).groupby(rows["seed"]).mean()
        entropies = surprise[~by_seed["is_greedy"].first() & (by_seed["options"].max() > 1)]
        top = shares.idxmax()
        shares_of[f"entropy_{name}"] = entropies.mean() + 0.0 if len(entropies) else None
        shares_of[f"top_{name}"], shares_of[f"top_{name}_share"] = top, 100 * shares[top]
    return shares_of


def _test_choices(cell: FinishedCell) -> pd.DataFrame:
    """Load the choices on test questions, without those that the step limit forces."""
    rows = read_table(cell.folder / "decisions.parquet", ("name", "step", "choice", "options", "log_prob"))
    settings = cell.run.config
    kept = rows[rows["name"].isin(CHOICES) & (rows["step"] <= settings.get("max_steps", np.inf))]
    return kept.assign(is_greedy="greedy" in (settings.get("decode"), settings.get("selection")))


def _entropies(row: pd.Series) -> str:
    entropies = row[[f"entropy_{name}" for name in CHOICES]].dropna()
    return ", ".join(f"{name.removeprefix('entropy_')} {value:.0f}" for name, value in entropies.items())


def _top(row: pd.Series) -> str:
    kinds = [name for name in CHOICES if not pd.isna(row[f"top_{name}_share"])]
    return f"{row[f'top_{kinds[0]}']} {row[f'top_{kinds[0]}_share']:.0f}" if kinds else ""

"""Training of a learning method: its log, policy, cost; UserError for a table that is missing or damaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.finished_cells import TRAINING, FinishedCell, read_table
from analysis.frames import KEY, Results

CALLS = "training_calls.parquet"
#: What a policy chooses among several, by name in the table of decisions.
CHOICES = ("backbone", "role", "mode", "action")
GREEDY = "greedy"
ENTROPY = (
    "Entropy: of the trained policy's choices on the test questions, given what it knows at each, in percent of a "
    "uniform choice among the same options. 100: random. 0: nothing is left to chance, though questions may get "
    "different choices. Estimated from the probabilities of what was drawn, so that a random policy may exceed 100."
)
#: The columns of a training budget.
BUDGET = ["questions", "passes", "trajectories", "updates", "calls", "tokens", "cost"]


def updates(cell: FinishedCell) -> pd.DataFrame:
    """Load the training log: one row an update, one column a measure, besides ``epoch``."""
    rows = read_table(cell.folder / TRAINING, ("epoch", "update", "measure", "value"))
    log = rows.pivot(index=["update", "epoch"], columns="measure", values="value")
    return log.reset_index("epoch").rename_axis(columns=None)


def mean_of_updates(log: pd.DataFrame, measure: str, by: ArrayLike) -> pd.Series:
    """Return the mean of a measure over the attempts of groups of updates, whose last may have fewer."""
    attempts = log["trajectories"]
    sums = pd.DataFrame({"total": log[measure] * attempts, "attempts": attempts}).groupby(np.asarray(by)).sum()
    return sums["total"] / sums["attempts"]


def training_summaries(results: Results) -> pd.DataFrame:
    """Return what each training used (:data:`BUDGET`), and entropy and top option of each choice in percent, by row."""
    rows = {
        key: {**pd.DataFrame(map(_budget, cells)).mean(), **_choices(cells)}
        for key, cells in results.cells_by_row.items()
        if all((cell.folder / CALLS).is_file() for cell in cells)
    }
    of_choices = [name for key in CHOICES for name in (f"entropy_{key}", f"top_{key}", f"top_{key}_share")]
    return pd.DataFrame(list(rows.values()), pd.MultiIndex.from_tuples(rows, names=KEY), [*BUDGET, *of_choices])


def _budget(cell: FinishedCell) -> dict[str, float]:
    """Return what the training of a cell used, by :data:`BUDGET`; zeros if it made no update."""
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
    """Return entropy and most frequent option of each choice at the test, as means over the seeds."""
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
    """Load the choices of a cell on its test questions, without those that the step limit forces."""
    rows = read_table(cell.folder / "decisions.parquet", ("name", "step", "choice", "options", "log_prob"))
    settings = cell.run.config
    kept = rows[rows["name"].isin(CHOICES) & (rows["step"] <= settings.get("max_steps", np.inf))]
    return kept.assign(is_greedy=GREEDY in (settings.get("decode"), settings.get("selection")))

"""Measures of one cell of a learning method; one that it does not have is absent, never zero."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis import traces
from analysis.finished_cells import FinishedCell, mean_of_updates, read_table, updates

_FIRST_UPDATES = 3
_LAST_SHARE = 0.25
# The settings that switch off the modules of GMR that choose; without one the choice is uniform and of no policy.
_MODULES = {"backbone": "llm_router", "role": "role_allocator"}


class Measure(NamedTuple):
    """Title and unit of a measure, its decimals as printed, and the factor from the unit of the data to it."""

    title: str
    digits: int = 1
    factor: float = 1.0
    is_difference: bool = False


# By name in the training log; `entropy` alone is that of a policy with one kind of choice.
_ENTROPIES = {f"entropy_{name}": name for name in ("mode", "role", "backbone", "halt", "retrieval", "write")}
_ENTROPIES["entropy"] = "policy"
_GROUPS = {"equal_reward": "equal rewards", "zero_advantage": "zero advantage"}

# In fifths of the updates, in the unit of the training log.
_PARTS = {"accuracy": Measure("training accuracy (%)", 1, 100), "utility": Measure("own utility in training", 3)}

#: In the order of the report. Data are in percent, in the paper's unit of cost, in nats.
MEASURES: Mapping[str, Measure] = {
    "accuracy": Measure("accuracy (%)"),
    "utility": Measure("utility (points)"),
    "own_utility": Measure("own utility", 3),
    "cost_total": Measure("cost a question (1e-4)", 2, 1e4),
    "depth": Measure("depth", 2),
    "write_rate": Measure("written (%)"),
    "retrieved": Measure("retrieved (%)"),
    **{f"retrieved_{step}": Measure(f"retrieved, step {step} (%)") for step in traces.STEPS},
    "empty_memory": Measure("empty at the aggregator (%)"),
    "top_backbone": Measure("share of the most used backbone (%)"),
    "top_role": Measure("share of the most used role (%)"),
    **{f"final_{key}": Measure(f"entropy: {title} (nats)", 2) for key, title in _ENTROPIES.items()},
    "collapse": Measure("backbone settled at update", 0),
    **{
        f"{key}_{part}": Measure(f"{title}, {part} updates (%)")
        for key, title in _GROUPS.items()
        for part in ("first", "last")
    },
    "updates": Measure("updates", 0),
    "steps": Measure("executed steps", 0),
    **{
        f"training_{key}_{part}": measure._replace(title=f"{measure.title}, part {part} of 5")
        for key, measure in _PARTS.items()
        for part in range(1, 6)
    },
    **{
        f"training_{key}_gain": measure._replace(title=f"{measure.title}, last part minus first", is_difference=True)
        for key, measure in _PARTS.items()
    },
}


def of_items(items: pd.DataFrame, cost_weight: float) -> dict[str, float]:
    """Return accuracy in percent, utility R - λ_c · cost of steps (paper, Optimization) in points, cost of calls."""
    accuracy = float(items["correct"].mean())
    return {
        "accuracy": 100 * accuracy,
        "utility": 100 * (accuracy - cost_weight * float(items["cost_steps"].mean())),
        "cost_total": float(items["cost_total"].mean()),
    }


def of_learner(cell: FinishedCell, cost_weight: float, collapsed_entropy: float) -> dict[str, float]:
    """Return all measures of a cell by key of :data:`MEASURES`; raises UserError for a damaged table."""
    measures = of_items(cell.items, cost_weight)
    # What the method itself maximises, in its own unit; null where that is nothing.
    utility = read_table(cell.folder / "items.parquet", ("utility",))["utility"]
    if utility.notna().all():
        measures["own_utility"] = float(utility.mean())
    rates = {name: ratio.value for name, ratio in traces.of_gates(cell).items() if name in MEASURES}
    measures |= {name: value if name == "depth" else 100 * value for name, value in rates.items()}
    decisions = read_table(cell.folder / "decisions.parquet", ("name", "choice"))
    for name, module in _MODULES.items():
        shares = 100 * decisions.loc[decisions["name"] == name, "choice"].value_counts(normalize=True)
        if len(shares) and cell.run.config.get(module, True):
            measures[f"top_{name}"] = shares.max()
            if name == "backbone":
                # A backbone that a policy never took has a share of zero.
                keys = sorted({*cell.run.backbones, *shares.index})
                measures |= {f"share_{key}": shares.get(key, 0.0) for key in keys}
    return {**measures, **_of_training(updates(cell), collapsed_entropy)}


def _of_training(log: pd.DataFrame, collapsed_entropy: float) -> dict[str, float]:
    if log.empty:
        return {}
    first, last = log.head(_FIRST_UPDATES).mean(), log.tail(math.ceil(_LAST_SHARE * len(log))).mean()
    measures = {f"final_{key}": last.get(key) for key in _ENTROPIES}
    for key in _GROUPS:
        if f"{key}_groups" in log:
            measures |= {f"{key}_first": 100 * first[f"{key}_groups"], f"{key}_last": 100 * last[f"{key}_groups"]}
    if "entropy_backbone" in log:
        below = log.index[log["entropy_backbone"] < collapsed_entropy]
        measures["collapse"] = below[0] if len(below) else math.inf
    measures |= {"updates": len(log), "steps": log["steps"].sum() if "steps" in log else None}
    # An update belongs to the fifth in which it begins, so with fewer than five updates some fifths are absent.
    fifths = np.arange(len(log)) * 5 // len(log)
    for key in _PARTS:
        if key in log:
            means = mean_of_updates(log, key, fifths).reindex(range(5))
            measures |= {f"training_{key}_{1 + part}": mean for part, mean in means.items()}
            measures[f"training_{key}_gain"] = means[4] - means[0]
    return {key: float(value) for key, value in measures.items() if pd.notna(value)}

"""Measures of one cell of a learning method: outcome, use of the memory, choices, and how its training ended.

A measure that a cell does not have is absent, never zero: that of a module which is off, of a gate that never had
anything to decide, of a training that did not take place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

_FIRST_UPDATES = 3
_LAST_SHARE = 0.25
# Far below what any set of weights would give, far above the rounding of a logarithm.
_UNIFORM = 1e-9
PARTS = 5


class Measure(NamedTuple):
    """The head of a column with its unit, its decimals as printed, and the factor from the unit of the data to it."""

    title: str
    digits: int = 1
    factor: float = 1.0


# By name in the training log; `entropy` alone is that of a policy with one kind of choice.
_ENTROPIES = {f"entropy_{name}": name for name in ("mode", "role", "backbone", "halt", "retrieval", "write")}
_ENTROPIES["entropy"] = "policy"
_GROUPS = {"equal_reward": "equal rewards", "zero_advantage": "zero advantage"}

#: Tables of the report and their measures, in order. Data are in percent, in the paper's unit of cost, in nats.
SECTIONS: Mapping[str, Mapping[str, Measure]] = {
    "Outcome": {
        "accuracy": Measure("accuracy (%)"),
        "utility": Measure("utility (points)"),
        "own_utility": Measure("own utility", 3),
        "cost_total": Measure("cost a question (1e-4)", 2, 1e4),
        "depth": Measure("depth", 2),
    },
    "Memory": {
        "write_rate": Measure("written (%)"),
        "retrieved": Measure("retrieved (%)"),
        **{f"retrieved_{step}": Measure(f"retrieved, step {step} (%)") for step in range(1, 6)},
        "empty_memory": Measure("empty at the aggregator (%)"),
    },
    "Choices": {
        "top_backbone": Measure("share of the most used backbone (%)"),
        "top_role": Measure("share of the most used role (%)"),
    },
    "Entropies": {
        **{f"final_{key}": Measure(f"{title} (nats)", 2) for key, title in _ENTROPIES.items()},
        "collapse": Measure("backbone settled at update", 0),
    },
    "Training signal": {
        **{
            f"{key}_{part}": Measure(f"{title}, {part} updates (%)")
            for key, title in _GROUPS.items()
            for part in ("first", "last")
        },
        "updates": Measure("updates", 0),
        "steps": Measure("executed steps", 0),
    },
}
MEASURES: Mapping[str, Measure] = {key: one for section in SECTIONS.values() for key, one in section.items()}
#: Measures of the tables of curves, with the unit of the training log.
IN_PARTS: Mapping[str, Measure] = {
    "accuracy": Measure("accuracy (%)", 1, 100),
    "utility": Measure("own utility", 3),
}


def of_items(items: pd.DataFrame, cost_weight: float) -> dict[str, float]:
    """Accuracy in percent, utility R - λ_c · cost of the steps (paper, Optimization) in points, cost of all calls."""
    accuracy = float(items["correct"].mean())
    return {
        "accuracy": 100 * accuracy,
        "utility": 100 * (accuracy - cost_weight * float(items["cost_steps"].mean())),
        "cost_total": float(items["cost_total"].mean()),
    }


def of_answers(items: pd.DataFrame) -> dict[str, float]:
    """Mean depth, and the mean of what the method itself maximises, in its own unit; null where that is nothing."""
    own = {"own_utility": float(items["utility"].mean())} if items["utility"].notna().all() else {}
    return {**own, "depth": float(items["depth"].mean())}


def of_memory(decisions: pd.DataFrame, questions: int) -> dict[str, float]:
    """Write rate, retrieved share and questions whose aggregator finds nothing stored, in percent.

    The retrieval gate decides once for every stored record, so its share of yes is Σ retrieved / Σ available. The
    steps of ``retrieved_k`` are counted from 0, as the paper does (Gate Behavior at Test Time); at step 0 there is
    nothing to retrieve.
    """
    opened = decisions.assign(yes=decisions["choice"] == "yes")
    write = opened[opened["name"] == "write"]
    retrieve = opened[opened["name"] == "retrieve"]
    found: dict[str, float] = {}
    if len(write):
        stored = write.loc[write["yes"], "item_id"].nunique()
        found |= {"write_rate": 100 * write["yes"].mean(), "empty_memory": 100 * (1 - stored / questions)}
    if len(retrieve):
        found["retrieved"] = 100 * retrieve["yes"].mean()
        for step, share in retrieve.groupby("step")["yes"].mean().items():
            found[f"retrieved_{step - 1}"] = 100 * share
    return found


def shares(decisions: pd.DataFrame, name: str) -> dict[str, float]:
    """Share of the steps, in percent, of each backbone or role that was chosen, the most used first.

    Empty where no policy chose: a module that is off draws uniformly, which its log-probabilities tell.
    """
    rows = decisions[decisions["name"] == name]
    if np.all(np.abs(rows["log_prob"] + np.log(rows["options"])) < _UNIFORM):
        return {}
    counts = rows["choice"].value_counts()
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {str(choice): 100 * float(count) / len(rows) for choice, count in ranked}


def of_choices(decisions: pd.DataFrame) -> dict[str, float]:
    """Share of the most used backbone and of the most used role, in percent of the steps."""
    found = {f"top_{name}": shares(decisions, name) for name in ("backbone", "role")}
    return {key: max(ranked.values()) for key, ranked in found.items() if ranked}


def of_training(log: pd.DataFrame, collapsed_entropy: float | None) -> dict[str, float]:
    """How the training went: entropies at its end, groups without a signal, its size.

    ``collapse`` is the first update whose rollouts came from a policy with a backbone entropy below the limit, and
    infinite where there was none. The log of a router left as initialised is empty.
    """
    if log.empty:
        return {}
    first, last = log.head(_FIRST_UPDATES), log.tail(math.ceil(_LAST_SHARE * len(log)))
    found = {f"final_{key}": last.get(key) for key in _ENTROPIES}
    means = {key: float(column.mean()) for key, column in found.items() if column is not None}
    for key in _GROUPS:
        for part, rows in (("first", first), ("last", last)):
            if f"{key}_groups" in rows:
                means[f"{key}_{part}"] = 100 * float(rows[f"{key}_groups"].mean())
    if "entropy_backbone" in log and collapsed_entropy is not None:
        below = log.index[log["entropy_backbone"] < collapsed_entropy]
        means["collapse"] = float(below[0]) if len(below) else math.inf
    means["updates"] = float(len(log))
    if "steps" in log:
        means["steps"] = float(log["steps"].sum())
    return {key: value for key, value in means.items() if not math.isnan(value)}


def is_curve(measure: str) -> bool:
    """Whether a measure of the training log is worth a curve; every entropy of a policy is."""
    return measure in ("accuracy", "utility", "cost_total", "depth") or measure.split("_")[0] == "entropy"


def parts(log: pd.DataFrame, measure: str) -> dict[int, float]:
    """Mean over the attempts of each fifth of the updates, counted from 0.

    An update belongs to the fifth in which it begins, so with fewer than five updates some fifths are absent.
    """
    fifths = log.assign(fifth=[PARTS * place // len(log) for place in range(len(log))])
    return {int(fifth): _mean(rows, measure) for fifth, rows in fifths.groupby("fifth")}


def by_epoch(log: pd.DataFrame, measure: str) -> pd.Series:
    """The curve of a training: mean over the attempts of each epoch, at the middle of its updates.

    An epoch tries every training question, so from one point to the next nothing but the policy and its draws has
    changed. A running mean between these points would compare other questions: those that two epochs happen to try
    at their border.
    """
    epochs = [rows for _, rows in log.groupby("epoch")]
    return pd.Series([_mean(rows, measure) for rows in epochs], [float(rows.index.values.mean()) for rows in epochs])


def mean_of(curves: Iterable[pd.Series]) -> pd.Series:
    """The mean over seeds, wherever all of them have a value."""
    return pd.concat(curves, axis=1).dropna().mean(axis=1)


def _mean(rows: pd.DataFrame, measure: str) -> float:
    """The last update of an epoch may be of fewer attempts than the others, and counts for less."""
    return float((rows[measure] * rows["trajectories"]).sum() / rows["trajectories"].sum())

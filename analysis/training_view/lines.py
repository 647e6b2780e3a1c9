"""The lines of a chart: every seed of a measure and their mean, update by update and as the mean of each epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.learning.curves import by_epoch, mean_of
from analysis.training_view.panels import Panel, label, panels_of

if TYPE_CHECKING:
    import pandas as pd

Logs = Mapping[int, "pd.DataFrame"]
_DIGITS = 8


def charts(module: str, logs: Logs) -> list[dict[str, Any]]:
    """The charts of a method on one benchmark, as the page takes them.

    Args:
        module: Module of the method.
        logs: Training logs by seed, one row an update, indexed by its number, and one column a measure besides
            ``epoch``; none of them empty.
    """
    names = {name for log in logs.values() for name in log.columns} - {"epoch"}
    return [_chart(panel, panel.among(names), logs) for panel in panels_of(module, names)]


def _chart(panel: Panel, measures: Sequence[str], logs: Logs) -> dict[str, Any]:
    return {
        "key": panel.key,
        "title": panel.title,
        "unit": panel.unit,
        "about": panel.about,
        "main": panel.main,
        "stacked": panel.stacked,
        "lines": [_line(measure, panel.factor, logs) for measure in measures],
    }


def _line(measure: str, factor: float, logs: Logs) -> dict[str, Any]:
    """One measure: by how its points are made, by seed, then the mean wherever every seed has a value."""
    having = {seed: log for seed, log in logs.items() if measure in log and log[measure].notna().any()}
    updates = {seed: log[measure] for seed, log in having.items()}
    epochs = {seed: _by_epoch(log, measure) for seed, log in having.items()}
    return {
        "measure": measure,
        "name": label(measure),
        "updates": _seeds(updates, factor, len(logs)),
        "epochs": _seeds(epochs, factor, len(logs)),
    }


def _by_epoch(log: pd.DataFrame, measure: str) -> pd.Series:
    """Means of the epochs that have a value; an update without one counts for nothing in its epoch."""
    known = log[measure].notna()
    weighed = log.assign(trajectories=log["trajectories"].where(known, 0))
    return by_epoch(weighed[known.groupby(log["epoch"]).transform("any")], measure)


def _seeds(curves: Mapping[int, pd.Series], factor: float, seeds: int) -> dict[str, Any]:
    found = {str(seed): _points(curve, factor) for seed, curve in curves.items()}
    if not len(curves) == seeds > 1:
        return found
    mean = mean_of(curves.values())
    longest = max(curves.values(), key=len)
    return {**found, "mean": _points(mean.reindex(longest.index), factor)}


def _points(curve: pd.Series, factor: float) -> dict[str, list[float | None]]:
    """A point without a value stays, so that the line has a gap there."""
    return {
        "x": [rounded(float(x)) for x in curve.index],
        "y": [None if math.isnan(value) else rounded(factor * float(value)) for value in curve],
    }


def rounded(value: float) -> float:
    """A number with more digits than any chart shows."""
    return float(f"{value:.{_DIGITS}g}")

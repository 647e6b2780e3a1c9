"""The course of a training: what its log says, in fifths and by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from analysis.learning.measures import Measure
from analysis.learning.results import Column, Row

if TYPE_CHECKING:
    import pandas as pd

PARTS = 5
#: Measures of the tables, with the unit of the training log.
IN_PARTS: Mapping[str, Measure] = {
    "accuracy": Measure("accuracy (%)", 1, 100),
    "utility": Measure("own utility", 3),
}
_ENTROPY = "entropy"


def is_curve(measure: str) -> bool:
    """Whether a measure of the training log is worth a curve; every entropy of a policy is."""
    return measure in ("accuracy", "utility", "cost_total", "depth") or measure.split("_")[0] == _ENTROPY


def trained(column: Column) -> dict[Row, dict[int, pd.DataFrame]]:
    """The training logs of one benchmark by row and seed, without rows that were left as initialised."""
    logs = {
        row: {seed: one.log for seed, one in found.items() if len(one.log)} for row, found in column.learned.items()
    }
    return {row: by_seed for row, by_seed in logs.items() if by_seed}


def parts(log: pd.DataFrame, measure: str) -> dict[int, float]:
    """Mean over the attempts of each fifth of the updates, counted from 0.

    An update belongs to the fifth in which it begins, so with fewer than five updates some fifths are absent.

    Args:
        log: One row an update.
        measure: A column of it.
    """
    fifths = log.assign(fifth=[PARTS * place // len(log) for place in range(len(log))])
    return {int(fifth): _mean(rows, measure) for fifth, rows in fifths.groupby("fifth")}


def gains(by_seed: Mapping[int, pd.DataFrame], measure: str) -> dict[int, float]:
    """Last fifth minus first, by seed, where a training had both."""
    found = {seed: parts(log, measure) for seed, log in by_seed.items()}
    return {seed: of[PARTS - 1] - of[0] for seed, of in found.items() if PARTS - 1 in of}


def by_epoch(log: pd.DataFrame, measure: str) -> pd.Series:
    """The curve of a training: mean over the attempts of each epoch, at the middle of its updates.

    An epoch tries every training question, so from one point to the next nothing but the policy and its draws has
    changed. A running mean between these points would compare other questions: those that two epochs happen to try
    at their border.

    Args:
        log: One row an update, indexed by its number.
        measure: A column of it.
    """
    import pandas as pd

    epochs = [rows for _, rows in log.groupby("epoch")]
    return pd.Series([_mean(rows, measure) for rows in epochs], [float(rows.index.values.mean()) for rows in epochs])


def mean_of(curves: Iterable[pd.Series]) -> pd.Series:
    """The mean over seeds, wherever all of them have a value."""
    import pandas as pd

    return pd.concat(curves, axis=1).dropna().mean(axis=1)


def _mean(rows: pd.DataFrame, measure: str) -> float:
    """The last update of an epoch may be of fewer attempts than the others, and counts for less."""
    return float((rows[measure] * rows["trajectories"]).sum() / rows["trajectories"].sum())
